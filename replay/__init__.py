"""Reading recordings without an archive: messages, tables, statistics."""
