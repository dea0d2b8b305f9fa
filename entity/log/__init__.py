"""The log of a topic: its partitions' writers, and the end of the log that is not replicated."""
