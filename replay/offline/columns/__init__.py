"""Columns of tables of messages: names, typed payloads, raft journals, scopes."""
