"""The commands of `aerotape tool`, a module for each group of them.

Each module has `add_commands`, which adds its commands to the parser of `aerotape tool`. They work
on the directory alone: `args.directory` has been found to be one.
"""
