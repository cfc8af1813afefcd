"""Decentralized federated learning over a mixnet made of its own participants.

Every participant trains and relays. A model state leaves its trainer as fragments, each in one onion packet
of constant size, over a path of its own; nobody on the way can tell from the network who sent which fragment.

The layers, and which may import which, are in `docs/architecture.md`. This module imports none of them, so
that importing one layer never pays for another.
"""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("unlinkabledfl")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+uninstalled"
