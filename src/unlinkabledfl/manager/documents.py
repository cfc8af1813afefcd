"""What the manager takes and gives, as typed documents: the contract with the dashboard and with scripts.

Requests refuse unknown fields. A figure that nobody measured is null, and so is one that is no finite number.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainValidator

from unlinkabledfl.experiment.figures import Indicators
from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.scenario import Scenario

__all__ = [
    "Board", "Checked", "Comparison", "Draft", "EndMessage", "EventList", "EventMessage", "Expected",
    "Health", "KeyDescription", "LogText", "Login", "MetricsMessage", "Mistake", "NodeList", "NodeState",
    "PhaseMessage", "Point", "Preset", "Presets", "Problem", "RecordPage", "RoundSummary", "RunBrief", "RunDetail",
    "RunList", "RunScenario", "RunStatus", "ScenarioSchema", "SectionDescription", "Series", "SeriesList", "Start",
    "Stop", "TomlText", "Topology",
]  # fmt: skip

_TOML_MAX = 512_000


def _as_characters(text: object) -> object:
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


Told = Annotated[str, BeforeValidator(_as_characters)]
"""What quotes a request, which may hold what is no character."""


class Document(BaseModel):
    """What all have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# ------------------------------------------------------------------------------------------------------ around it all


class Health(Document):
    """The manager is there."""

    status: Literal["ok"] = "ok"
    version: str


class Login(Document):
    """The token that was printed when the manager started."""

    token: str = Field(min_length=1, max_length=512)


class Mistake(Document):
    """What is wrong with one setting. `takes` reads after the word "takes", `hint` is a way out."""

    key: Told = Field(description="The dotted name, such as `mixnet.path_length`, or of a section.")
    got: Told = Field(description="The value as it was written.")
    takes: Told
    hint: str | None
    text: Told = Field(description="All of it as one sentence.")


class Problem(Document):
    """Why a request was refused, in words."""

    problem: Told
    mistakes: tuple[Mistake, ...] = ()


# ----------------------------------------------------------------------------------------------------------- scenarios


def _tables(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was sent
    if not isinstance(value, dict):
        raise ValueError("a scenario is an object of sections")  # noqa: TRY004 - pydantic wants this one
    return value


class Draft(Document):
    """A scenario that may still have mistakes: sections of settings. What is left out has its default."""

    scenario: dict[str, JsonValue]


class Start(Document):
    """A scenario to be run."""

    scenario: Annotated[dict[str, Any], PlainValidator(_tables, json_schema_input_type=Scenario)]


class TomlText(Document):
    """A scenario as a TOML file holds it; it may begin with `preset = "paper"`."""

    toml: str = Field(max_length=_TOML_MAX)


class Checked(Document):
    """A scenario with all defaults filled in, or what is wrong with it: each key once."""

    scenario: Scenario | None
    mistakes: tuple[Mistake, ...]


class Expected(Document):
    """What a scenario promises, or why it cannot work."""

    indicators: Indicators | None
    mistakes: tuple[Mistake, ...]


class Preset(Document):
    """A scenario that comes with the package."""

    name: str
    says: str
    toml: str
    scenario: Scenario


class Presets(Document):
    """All of them."""

    presets: tuple[Preset, ...]


class KeyDescription(Document):
    """One setting, as a form needs it. `json_schema` has its type, bounds and choices."""

    key: str = Field(description="Its dotted name.")
    name: str
    says: str
    takes: str
    default: JsonValue
    unit: str
    symbol: str = Field(description="The paper's, where it has one.")
    json_schema: dict[str, JsonValue]


class SectionDescription(Document):
    """A group of settings."""

    name: str
    says: str
    keys: tuple[KeyDescription, ...]


class ScenarioSchema(Document):
    """Everything that can be set, in the order of a form, and the JSON schema of the whole."""

    sections: tuple[SectionDescription, ...]
    json_schema: dict[str, JsonValue]


# ---------------------------------------------------------------------------------------------------------------- runs


class RunStatus(StrEnum):
    """How a run stands. `starting`: launched, and not heard of yet. `damaged`: its directory cannot be read."""

    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    DAMAGED = "damaged"


class RunBrief(Document):
    """A run, as a list shows it."""

    id: str
    name: str
    backend: str
    nodes: int
    planned_rounds: int
    seed: int
    status: RunStatus
    reason: str = Field(description="Why it failed or was interrupted, or what is wrong with it; empty if nothing is.")
    rounds: int = Field(description="Rounds of which figures are known.")
    accuracy_mean: float | None = Field(description="After the last round with an evaluation.")
    deaths: int
    started_at: datetime
    seconds: float | None = Field(description="Of real time, all parts of a resumed run together.")
    bytes: int = Field(description="Of its metrics, so far.")


class RunList(Document):
    """Runs, the youngest first."""

    runs: tuple[RunBrief, ...]
    total: int = Field(description="How many there are that match, listed or not.")


class RoundSummary(Document):
    """A round, over nodes: means, but for the least accuracy and the median round trip."""

    round: int
    accuracy_mean: float | None
    accuracy_min: float | None
    completeness: float | None
    seconds: float | None
    rtt_s_p50: float | None
    bytes_sent_per_node: float | None
    cpu_s_per_node: float | None


class RunDetail(RunBrief):
    """A run, with all that is known of it as a whole."""

    by_round: tuple[RoundSummary, ...]
    fragments: dict[str, int]
    network: dict[str, float | None]
    run_clock_s: float = Field(description="How far the run's own clock is; virtual in a simulation.")
    share_done: float = Field(ge=0, le=1)
    time_left_s: float | None = Field(description="An estimate, in real time, while it runs.")
    notes: tuple[str, ...] = Field(description="What could not be written or read.")
    machine: dict[str, JsonValue] | None
    versions: dict[str, JsonValue] | None
    has_parquet: bool
    has_board: bool = Field(description="Whether it was attacked: then there is a linkability board.")


class Stop(Document):
    """How to stop a run: with its records and models saved, or at once."""

    force: bool = False


class RunScenario(Document):
    """What a run was asked."""

    toml: str
    scenario: Scenario | None = Field(description="Null where this version does not understand it any more.")


class Topology(Document):
    """The graph as the run began: each link once."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]


class NodeState(Document):
    """A node as it was last heard of."""

    node: int
    state: Literal["waiting", "running", "finished", "left", "dead"] = Field(
        description="`waiting`: not heard of yet, or joins later; `left`: by schedule; `dead`: it should not have."
    )
    phase: str | None = Field(description="train, exchange, aggregate, evaluate or idle, while it runs.")
    round: int = Field(description="The round that it is in, or was last; 0 before the first.")
    heard_at_s: float | None = Field(description="When it said anything last, on the run clock.")
    poisons: bool = Field(description="Whether it attacks, as the scenario asks.")
    last_error: str | None
    gauges: dict[str, float | None] = Field(description="Its last samples, such as queue_own and cover_share.")
    figures: dict[str, float | None] = Field(description="Its last figures of a round, such as accuracy and pss_mib.")


class NodeList(Document):
    """All nodes at one moment."""

    nodes: tuple[NodeState, ...]
    clock_s: float
    position: int = Field(description="Stream from here on to miss nothing: `stream?after=`.")


class EventMessage(Document):
    """Something that happened once."""

    kind: Literal["event"] = "event"
    position: int
    time_s: float
    node: int | None
    what: EventKind
    text: str


class MetricsMessage(Document):
    """Figures of one node, of a round or (round null) of this moment. Node null: of the network."""

    kind: Literal["metrics"] = "metrics"
    position: int
    time_s: float
    round: int | None
    node: int | None
    values: dict[str, float | None]


class PhaseMessage(Document):
    """What a node does from now on."""

    kind: Literal["phase"] = "phase"
    position: int
    time_s: float
    round: int
    node: int
    phase: str


class EndMessage(Document):
    """The run does not go on: the last message of a stream."""

    kind: Literal["end"] = "end"
    status: RunStatus
    reason: str


class RecordPage(Document):
    """What a run told after a position, in order."""

    records: tuple[Annotated[MetricsMessage | EventMessage | PhaseMessage, Field(discriminator="kind")], ...]
    position: int = Field(description="Ask again with `after` this.")
    is_live: bool = Field(description="Whether more may follow.")


class EventList(Document):
    """All events, in the order in which they were told; the churn and the attacks among them."""

    events: tuple[EventMessage, ...]


class Point(Document):
    """One place of a curve. Over nodes, and for samples over the moments near `x`."""

    x: float = Field(description="The round, or seconds on the run clock.")
    mean: float
    low: float
    high: float
    nodes: int


class Series(Document):
    """One metric along the run."""

    metric: str
    of: Literal["round", "moment"]
    points: tuple[Point, ...]


class SeriesList(Document):
    """Curves: a name that is a figure of rounds and a gauge as well has two."""

    series: tuple[Series, ...]
    metrics: tuple[str, ...] = Field(description="All names that there are.")
    position: int


class LogText(Document):
    """The end of a log."""

    text: str
    is_cut: bool = Field(description="Whether there is more before it.")


class Board(Document):
    """The linkability board of a run, as `unlinkabledfl attack` wrote it."""

    board: tuple[dict[str, JsonValue], ...]
    document: dict[str, JsonValue] = Field(description="All of its document.")


class Comparison(Document):
    """Two runs side by side, as `unlinkabledfl compare --json` says it."""

    a: dict[str, JsonValue]
    b: dict[str, JsonValue]
    scenario: tuple[dict[str, JsonValue], ...]
    versions_differ: tuple[dict[str, JsonValue], ...]
    accuracy: dict[str, JsonValue] | None
    costs: tuple[dict[str, JsonValue], ...]
    notes: tuple[str, ...]
