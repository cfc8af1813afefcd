"""Who can be linked: the theory's bounds, and adversaries that measure what is left of them."""
