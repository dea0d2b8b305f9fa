"""Help for writing commands: their overview, proposals in errors, completion in shells."""
