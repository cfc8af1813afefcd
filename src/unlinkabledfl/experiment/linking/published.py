"""What the published evaluation says of linking: its ablation, and the two ends of its sweep over compromised relays.

All of it at N = 32 on a circulant of degree 4; accuracy is the mean over the published runs, with its deviation.
"""

from dataclasses import dataclass

from unlinkabledfl.experiment.linking.configurations import row_name

__all__ = ["ABLATION", "ROUND_TRIP_S", "Published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published row, under the name that the board has for the same deployment."""

    configuration: str
    words: str
    accuracy: float
    deviation: float | None
    baseline: float | None


ABLATION = (
    Published(configuration="direct", words="Direct (no mixnet)", accuracy=0.99, deviation=0.01, baseline=0.08),
    Published(configuration="K=1", words="Single hop (K=1)", accuracy=1.00, deviation=0.00, baseline=0.25),
    Published(configuration="no cover", words="No cover packets", accuracy=0.10, deviation=0.02, baseline=0.08),
    Published(configuration="no delay", words="No randomized delay", accuracy=0.06, deviation=0.02, baseline=0.08),
    Published(configuration="paper", words="Full UnlinkableDFL", accuracy=0.08, deviation=0.01, baseline=0.08),
    # The text gives only the ends of the sweep: 0.06 without compromised relays and this with a quarter of them.
    Published(
        configuration=row_name("paper", 0.25), words="c = 0.25 (sweep)", accuracy=0.11, deviation=None, baseline=None
    ),
)

ROUND_TRIP_S = 29.7
"""Of the full design: K = 2, O = 100, gaps of 0.1 s."""
