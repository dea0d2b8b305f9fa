"""The configuration: its properties, the sources of their values, their parsers."""
