"""The configuration: its properties, where their values come from, how they are read."""
