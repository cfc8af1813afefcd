"""The indicators of a scenario as one typed document: what `check --json` prints, and what a manager serves.

None stands for what cannot be known before the run; `basis` says what an estimate rests on.
"""

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Caution", "Entropies", "Exchanged", "Figures", "Fragmented", "Graph", "Indicators", "Linkability", "Resources",
    "Robustness", "RouteLinkability", "Sent", "Theory", "Timing",
]  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Graph(_Part):
    """The topology."""

    family: str
    nodes: int = Field(json_schema_extra={"symbol": "N"})
    links: int
    degree_min: int
    degree_max: int
    diameter: int


class Exchanged(_Part):
    """Who can write to whom, and who does; over nodes."""

    reachable_min: int = Field(description="Peers to whom the routes lead.")
    reachable_mean: float
    partners_min: int = Field(description="Peers to whom a node sends its model.")
    partners_mean: float
    partners_max: int
    joining: int
    leaving: int


class Fragmented(_Part):
    """The model in packets."""

    model: str
    values: int | None
    codec: str
    capacity_bytes: int = Field(description="What one packet carries of a fragment.")
    by_codec: dict[str, int] = Field(description="Packets of a whole model under each codec.")
    per_model: int | None
    per_partner: int | None = Field(description="Sent to each partner in a round.")
    per_round: float | None = Field(description="Sent by a node in a round.")


class Sent(_Part):
    """What a node puts on its links, relayed packets and cover included."""

    packet_bytes: int
    hops: float
    packets_per_message: float
    packets_per_s: float = Field(description="While nothing but cover is sent; 0 without cover.")
    packets_per_round: float | None
    bytes_per_round: float | None
    cover_share: float | None = Field(description="Of all packets that a node makes itself, without acknowledgements.")


class Timing(_Part):
    """How long a round takes."""

    training_s: float | None
    exchange_s: float | None
    evaluation_s: float | None
    round_s: float | None
    run_s: float | None
    round_trip_s: float = Field(description="Mean time from a packet's departure to its acknowledgement.")
    deadline_s: float
    basis: str


class Entropies(_Part):
    """Counted, not posterior: they describe parameters, not an adversary."""

    path_bits: float = Field(json_schema_extra={"symbol": "H_path"})
    local_relay_bits: float = Field(json_schema_extra={"symbol": "H_relay^loc"})
    outbox_size: float = Field(description="O; for `poisson` the outbox of equal Shannon entropy, e·(packets held).")
    held_packets: float = Field(description="How many packets wait in a relay, on average.")
    basis: str


class Theory(_Part):
    """The theorems' quantities. None: routes of this kind, or so many of them, are not counted."""

    relay_bits: float = Field(description="H_relay: all K stages hidden.", json_schema_extra={"symbol": "H_relay"})
    senders: float | None = Field(description="Possible senders, given last hop and destination.")
    routes: int | None = Field(description="The most routes that one of them has.")
    route_bits: float | None = Field(
        description="H∞(R_K | T): min-entropy of the route, given last hop and destination.",
        json_schema_extra={"symbol": "H∞(R_K|T)"},
    )
    multiplicity_bits: float | None = Field(
        description="log2 of the trajectories that one sender has: routes, and matchings on each.",
        json_schema_extra={"symbol": "γ_T"},
    )
    bound: float | None = Field(description="Theorem 1, nothing compromised.")
    compromised: float = Field(description="The share of compromised nodes of what follows.")
    bound_compromised: float | None = Field(description="Theorem 1 with them; 1: it says nothing.")
    all_compromised_idealized: float = Field(description="c^K, the corollary's.")
    all_relays_compromised: float = Field(description="That all K − 1 relays of a route are, for an honest sender.")
    basis: str


class RouteLinkability(_Part):
    """What the last hop would tell if routes were of this kind."""

    route: str
    last_hop: float | None
    guess: float | None
    basis: str


class Linkability(_Part):
    """What the last hop alone tells of the sender."""

    last_hop: float | None
    guess: float
    basis: str
    by_route: tuple[RouteLinkability, ...] = Field(description="The same scenario with each kind of route.")


class Robustness(_Part):
    """Whether the rule has the candidates that it needs."""

    rule: str
    candidates: float = Field(description="Slices to combine for a range, our own included, at the node with fewest.")
    needed: int
    feasible: bool
    byzantine: int = Field(json_schema_extra={"symbol": "B"})
    tolerated: int = Field(description="The largest B for which FragKrum is feasible with these candidates.")
    attackers: int


class Resources(_Part):
    """What the run asks of this machine."""

    memory_mib: float
    cores: float | None = Field(description="Cores that are busy on average.")
    wall_s: float | None = Field(description="How long the run takes on this machine.")
    machine_memory_mib: float | None
    machine_cores: int
    basis: str


class Caution(_Part):
    """Something about the scenario that will not work, or not as one might think."""

    key: str
    serious: bool = Field(description="Whether the run will fail its purpose; otherwise it is worth knowing.")
    text: str


class Figures(_Part):
    """All of them."""

    scenario: str
    backend: str
    rounds: int
    graph: Graph
    exchange: Exchanged
    fragments: Fragmented
    traffic: Sent
    time: Timing
    entropy: Entropies
    linkability: Linkability
    theory: Theory
    robustness: Robustness
    resources: Resources


class Indicators(Figures):
    """All of them, and what is to be said about them."""

    cautions: tuple[Caution, ...]
