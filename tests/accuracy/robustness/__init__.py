"""That no input breaks devlint: other people's code, broken code, and code of any size and depth."""
