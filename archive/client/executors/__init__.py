"""Executors of the client's steps: blocking, asyncio, and polling."""
