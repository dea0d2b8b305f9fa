"""What `aerotape web` and `aerotape metrics` share: an archive, observed by its files."""
