"""The blocking client, generated from the asyncio one (`client.generate`)."""
