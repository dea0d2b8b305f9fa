"""The commands of `aerotape tool`, a module for each: its name is the command's, with `_` for `-`.

`describe-all`, `mark-valid` and `mark-invalid` share the modules `describe` and `mark`. Each module
has `add_commands(commands)`, which adds its commands to the parser of `aerotape tool`. They work on
the directory alone: `args.directory` is known to be an archive directory. The modules of `writing`
have --dry-run; those of `read_only` leave the directory as it is.
"""
