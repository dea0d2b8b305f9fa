"""The batch data source `aerotape`: options, planning, filter pushdown."""
