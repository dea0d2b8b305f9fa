"""The commands of `aerotape ledger`."""
