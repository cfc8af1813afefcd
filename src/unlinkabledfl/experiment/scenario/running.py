"""`[run]`, `[simulation]`, `[process]` and `[monitoring]`: how a scenario is run and watched."""

from typing import Literal, TypeAlias

from unlinkabledfl.experiment.scenario.base import SEED_END, Section, setting

__all__ = ["BackendName", "Container", "Monitoring", "Process", "Run", "Simulation"]

BackendName: TypeAlias = Literal["simulation", "process", "container"]


class Run(Section):
    """The run itself."""

    name: str = setting(
        "run", "What directories and reports call it.", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64
    )
    seed: int = setting(1, "Decides everything that is drawn when the run is prepared.", ge=0, lt=SEED_END)
    rounds: int = setting(10, "How many rounds there are.", symbol="T", unit="rounds", ge=1, le=100_000)
    backend: BackendName = setting(
        "simulation",
        "The world it runs in: virtual time in one process, or real time and for each node a process, or a container.",
    )


class Simulation(Section):
    """The virtual world."""

    packets: Literal["sphinx", "sealed"] = setting(
        "sphinx", "Real packets, or ones of equal size that are closed by convention only: for thousands of nodes."
    )
    workers: int = setting(0, "How many processes train; 0: one for each core.", ge=0, le=4_096)


class Process(Section):
    """The real world on this host."""

    pin: bool = setting(False, "Whether each node is bound to one core.")
    cores: tuple[int, ...] = setting(
        (), "Bind nodes to these cores in turn; none: to all that there are, if `pin`.", strict=False, max_length=4_096
    )
    host: str = setting("127.0.0.1", "The address that nodes listen at.", min_length=1, max_length=255)
    base_port: int = setting(0, "Node i listens at this port plus i; 0: at any that is free.", ge=0, le=65_535)
    datagram_bytes: int = setting(
        0, "The largest datagram, at least 1,200; 0: 16,384 on loopback, else 1,280.", unit="bytes", ge=0, le=16_384
    )
    workers: int = setting(0, "How many learners compute at once; 0: one for each core.", ge=0, le=4_096)
    start_timeout_s: float = setting(120.0, "How long nodes may take until all are linked.", unit="s", gt=0, le=86_400)


class Container(Section):
    """Containers on this host, one a node. Cores, turns, datagrams and time limits are those of [process]."""

    engine: str = setting(
        "",
        "Where the engine listens: unix:///run/podman/podman.sock; empty: where DOCKER_HOST says, or Docker's own.",
        max_length=1_024,
    )
    root: Literal["image", "host"] = setting(
        "image", "What a container's files are: those of an image, or this host's interpreter and libraries, read-only."
    )
    image: str = setting(
        "", "The image's name; empty: the one that `unlinkabledfl containers build` makes.", max_length=255
    )
    plugins: tuple[str, ...] = setting(
        (), "Directories with Python modules of your own, for the nodes to read.", strict=False, max_length=16
    )
    user_id: int = setting(
        0, "The user and group number that nodes run under; 0: yours, or 10001 if you are root.", ge=0, lt=2**31
    )
    memory_mib: int = setting(1_024, "How much memory a node may use.", unit="MiB", ge=64, le=1_048_576)
    cpus: float = setting(0.0, "How many cores' worth of time a node may use; 0: any.", unit="cores", ge=0, le=4_096)
    pids: int = setting(256, "How many processes and threads a node may have.", ge=16, le=65_536)
    tmp_mib: int = setting(64, "How much a node may write to /tmp, which is in memory.", unit="MiB", ge=1, le=65_536)


class Monitoring(Section):
    """What is recorded."""

    gauges_interval_s: float = setting(
        1.0, "How often queues and rates are sampled; 0: never.", unit="s", ge=0, le=86_400
    )
    evaluate_every: int = setting(
        1, "Measure the model after every so many rounds, and after the last; 0: after the last only.", ge=0, le=100_000
    )
    trace: bool = setting(
        False, "Whether what an observer of the links sees is recorded, packet by packet, for `unlinkabledfl attack`."
    )
    trace_compromised: float = setting(
        0.25,
        "Which share of the nodes an adversary of the trace may own at most: what their relays link is recorded too.",
        symbol="c",
        ge=0,
        le=1,
    )
    trace_crossings: int = setting(
        20_000_000,
        "How many packets on links are recorded at most; what comes after them is not in the trace.",
        unit="packets",
        ge=1,
        le=100_000_000,
    )
