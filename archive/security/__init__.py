"""Authentication of clients, and authorisation of their requests."""
