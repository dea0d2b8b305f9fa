"""The commands of `aerotape tool`; `aerotape.tools.tool` has the module of each.

They work on the directory alone: `args.directory` is known to be an archive directory. The modules
of `writing` have --dry-run; those of `read_only` leave the directory as it is.
"""
