"""Slow second implementations, written from the specifications alone, that the product must equal."""
