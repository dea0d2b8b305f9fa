"""Running archives of either kind, and clients of them."""
