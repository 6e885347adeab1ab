"""What a release takes: its metadata, its notes, and a check that what has been built works.

``python -m tools.releasing`` makes and tries, from a clean clone, all that this platform can make of a release.
.github/workflows/release.yml does the same for all platforms, and publishes it.
"""
