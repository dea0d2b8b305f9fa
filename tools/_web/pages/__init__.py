"""The pages of the web service, for people."""
