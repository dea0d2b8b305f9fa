"""Following a topic: the changes of all its journals in the order of the log."""
