"""The mark file: its layout, ownership of the directory, and the distinct error log in it."""
