"""The commands of `aerotape journal`."""
