"""The control session of a client: connecting, sending requests, staying connected."""
