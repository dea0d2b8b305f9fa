"""Commands of `aerotape tool` that write nothing."""
