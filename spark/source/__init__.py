"""The batch data source `aerotape`: options and planning."""
