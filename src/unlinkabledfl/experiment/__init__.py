"""Experiments over the layers below: so far the demonstration of the mixnet."""
