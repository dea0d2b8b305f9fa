"""The blocking form of entities, generated from the asyncio one (`client.generate`)."""
