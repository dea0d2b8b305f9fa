"""The seek index of a recording of a raft journal: positions by index and asqn."""
