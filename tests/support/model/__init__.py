"""Models of recordings and messages, to compare archives with."""
