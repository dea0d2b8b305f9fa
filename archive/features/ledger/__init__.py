"""Ledgers of an archive: recordings of checksummed entries, with ids and chosen durability."""
