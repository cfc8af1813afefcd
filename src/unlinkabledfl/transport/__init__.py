"""Real links: the asyncio and QUIC driver of a node."""
