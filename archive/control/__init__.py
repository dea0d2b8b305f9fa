"""Control sessions: requests of clients, their authorisation and the responses."""
