"""Shared code of the commands that run until they are stopped."""
