"""The client of an archive, aerotape's or Aeron's own; `aerotape` exports its public names."""
