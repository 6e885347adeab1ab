"""The language server: devlint's findings, fixes and answers where code is written. It needs ``devlint[server]``."""
