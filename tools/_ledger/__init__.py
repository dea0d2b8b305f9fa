"""The actions of `aerotape ledger`."""
