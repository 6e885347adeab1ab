"""The configuration: ``[tool.devlint]`` in pyproject.toml as one frozen value."""
