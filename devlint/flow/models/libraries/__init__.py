"""Models of other libraries, as far as rows of the catalog cannot say it."""
