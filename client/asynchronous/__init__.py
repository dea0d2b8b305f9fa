"""The asyncio client, from which the blocking one is generated (`client.generate`)."""
