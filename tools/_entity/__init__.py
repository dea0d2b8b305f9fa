"""The commands of `aerotape entity`, a module for each: its name is the command's.

Each module has `add_commands(commands)`, which adds its command to the parser of `aerotape entity`.
"""
