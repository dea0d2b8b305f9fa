"""The archive daemon, and its client in `client`."""
