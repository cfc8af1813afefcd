"""What one federation of the study is."""

from dataclasses import dataclass

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One federation, and how it is drawn."""

    preset: str
    """Whose graph, exchange and codec."""
    alpha: float
    seed: int
    obfuscation: str = "none"
    scale: float = 0.0
    dispersal: float = 1.0
    """The share of its ranges that a sender sends to each destination; other ones to each."""
    lost: float = 0.0
    """The share of fragments that do not arrive."""
    dataset: str = "fashion-mnist"
    nodes: int = 16
    samples: int = 4_000
    """Of the train set, divided among all nodes."""
    test_samples: int = 2_000
    rounds: int = 8
    batch_size: int = 16
    recipients: int = 3
    """How many nodes are curious, each for itself."""
