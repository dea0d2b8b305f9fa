"""A model of the protocol of mirrored ledgers."""
