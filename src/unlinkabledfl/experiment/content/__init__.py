"""The content boundary, measured: federations in memory, curious recipients in them, and what masks change."""
