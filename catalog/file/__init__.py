"""The catalog file: its mapping, its entries, lookups and compaction."""
