"""Entities for asyncio, from which the blocking form is generated (`client.generate`)."""
