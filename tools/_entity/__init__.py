"""The commands of `aerotape entity`; `aerotape.tools.entity` has the module of each."""
