"""The one error of this package which a person meets."""


class EcosystemError(Exception):
    """The comparison could not be made; the message is one clear line."""
