"""Models of recordings and messages, for comparison with archives."""
