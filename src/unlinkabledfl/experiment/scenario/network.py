"""`[topology]`, `[mixnet]` and `[links]`: who is joined with whom, how packets travel, and over what."""

from typing import Literal, TypeAlias

from unlinkabledfl.experiment.scenario.base import SEED_END, Section, setting

__all__ = [
    "Churn", "ExchangeName", "FamilyName", "KeyLayerName", "Links", "MixerName", "Mixnet", "RouteName", "Topology",
]  # fmt: skip

FamilyName: TypeAlias = Literal["circulant", "ring", "full", "random_regular", "small_world", "file"]
RouteName: TypeAlias = Literal["overlay", "walk", "walk_up_to", "valiant"]
MixerName: TypeAlias = Literal["poisson", "outbox", "off"]
ExchangeName: TypeAlias = Literal["reach", "neighbours", "within"]
KeyLayerName: TypeAlias = Literal["x25519", "x25519-kem", "pq"]


class Churn(Section):
    """One node that joins or leaves."""

    node: int = setting(..., "Its index, from 0.", ge=0, le=9_999)
    round: int = setting(..., "The first round it takes part in, or the last.", ge=1, le=100_000)


class Topology(Section):
    """Who has a transport link with whom, and who comes later or leaves earlier."""

    nodes: int = setting(16, "How many there are, those that join later included.", symbol="N", ge=2, le=10_000)
    family: FamilyName = setting("circulant", "The law of the graph.")
    degree: int = setting(4, "Links a node; `ring` and `full` have their own.", symbol="d", ge=1, le=9_999)
    rewire: float = setting(0.1, "With `small_world`: which share of the links leads elsewhere.", ge=0, le=1)
    file: str = setting("", "With `file`: a text file with one link a line, as two indices from 0.", max_length=4_096)
    seed: int = setting(0, "Of the random families; 0: the scenario's.", ge=0, lt=SEED_END)
    join: tuple[Churn, ...] = setting(
        (), "Nodes that join with a round: `[{ node = 3, round = 4 }]`.", strict=False, max_length=10_000
    )
    exit: tuple[Churn, ...] = setting(
        (), "Nodes that leave after a round: `[{ node = 3, round = 4 }]`.", strict=False, max_length=10_000
    )


class Mixnet(Section):
    """How packets travel."""

    route: RouteName = setting(
        "overlay",
        "Relays drawn from everybody, or walks over the topology of exactly K or of up to K links, or two shortest legs"
        " over a random middle.",
    )
    path_length: int = setting(3, "How many hops a packet takes, its destination included.", symbol="K", ge=1, le=10)
    mixer: MixerName = setting(
        "poisson", "How a relay mixes: delays that senders choose, an outbox that is shuffled, or not at all."
    )
    delay_mean_s: float = setting(
        1.0,
        "`poisson`: mean of the delay in each relay. `outbox`: mean of the gap between two packets.",
        unit="s",
        symbol="μ",
        ge=0,
        le=100,
    )
    delay_deviation_s: float = setting(
        0.001, "`outbox`: standard deviation of the gaps.", unit="s", symbol="σ", ge=0, le=100
    )
    outbox_size: int = setting(
        100, "`outbox`: how many packets are shuffled together.", unit="packets", symbol="O", ge=1, le=100_000
    )
    refill_at: int = setting(
        0, "`outbox`: how many are left when it is filled again.", unit="packets", ge=0, lt=100_000
    )
    emission_rate_per_s: float = setting(
        4.0,
        "`poisson`: how often a node sends a packet of its own, or cover where it has none.",
        unit="packets/s",
        symbol="λ",
        gt=0,
        le=10_000,
    )
    loop_rate_per_s: float = setting(
        0.5, "`poisson`: how often it sends cover that comes back to itself.", unit="packets/s", ge=0, le=10_000
    )
    cover: bool = setting(True, "Whether cover is sent where there is nothing to send.")
    exchange: ExchangeName = setting(
        "within",
        "To whom a node sends its model: everybody that its routes reach, its neighbours in the topology, or all within"
        " `exchange_hops` links.",
    )
    exchange_hops: int = setting(2, "With `within`: how many links.", symbol="h", unit="links", ge=1, le=10_000)
    max_attempts: int = setting(8, "How often a fragment is sent before it is given up.", ge=1, le=100)
    key_layer: KeyLayerName = setting(
        "x25519", "How hops get their keys: classic, as a KEM, or as a KEM that also resists quantum computers."
    )
    body_bytes: int = setting(10_240, "What follows the header of a packet.", unit="bytes", ge=1_024, le=1_048_576)
    max_hops: int = setting(
        0, "For how many hops a header has room. 0: five, or as many as the routes need if those are more.", ge=0, le=10
    )
    own_capacity: int = setting(
        4_000, "How many fragments of its own a node queues.", unit="packets", ge=1, le=10_000_000
    )
    transit_capacity: int = setting(4_000, "How many packets of others it holds.", unit="packets", ge=1, le=10_000_000)
    link_allowance_s: float = setting(
        0.5, "What a link and a busy CPU may add to a round trip for each link.", unit="s", ge=0, le=600
    )
    no_route_patience_s: float = setting(
        300.0, "How long a fragment waits while no route leads to its destination.", unit="s", ge=0, le=86_400
    )
    epoch_length_s: float = setting(
        3_600.0, "How long a node keeps a Sphinx key; 0: as long as it lives.", unit="s", ge=0, le=1e9
    )
    neighbour_packets_per_s: float = setting(
        500.0, "What one neighbour may hand over in the long run.", unit="packets/s", ge=1, le=1e6
    )
    neighbour_share: float = setting(
        0.25, "Which share of `transit_capacity` the packets of one neighbour may take.", gt=0, le=1
    )


class Links(Section):
    """How links behave in the virtual world; in the real one they are what they are."""

    latency_s: float = setting(0.02, "How long a packet travels.", unit="s", ge=0, le=60)
    jitter_s: float = setting(0.005, "Mean of what is added to that, exponentially.", unit="s", ge=0, le=60)
    bandwidth_bytes_per_s: float = setting(
        0.0, "What a link carries in each direction; 0: never the bottleneck.", unit="bytes/s", ge=0, le=1e12
    )
    loss: float = setting(0.0, "Which share of packets never arrives, after all that QUIC repairs.", ge=0, lt=1)
