"""The symbol table: the functions, classes and imports of a file, and what is read off them before they run."""
