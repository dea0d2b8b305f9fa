"""Commands of `aerotape tool` that can write; all have --dry-run."""
