"""`[learning]`, `[payload]`, `[aggregation]` and `[attack]`: what is learned, and what becomes of it on the way."""

from typing import Literal, TypeAlias

from unlinkabledfl.experiment.scenario.base import Section, setting

__all__ = [
    "Aggregation", "Attack", "AttackName", "CodecName", "Completion", "DatasetName", "Learning", "ModelName",
    "ObfuscationName", "OptionValue", "PartitionName", "Payload", "RuleName", "SelectionName", "StalenessName",
]  # fmt: skip

DatasetName: TypeAlias = Literal["fashion-mnist-mini", "mnist", "fashion-mnist", "cifar10"]
ModelName: TypeAlias = Literal["lenet5", "squeezenet1_1", "mobilenet_v2"]
PartitionName: TypeAlias = Literal["dirichlet", "iid", "shards"]
CodecName: TypeAlias = Literal["fit", "f32", "q4", "q5", "q6", "q7", "q8"]
SelectionName: TypeAlias = Literal["random", "rotating", "largest_change"]
RuleName: TypeAlias = Literal["fragfedavg", "fragkrum", "median", "trimmed_mean"]
ObfuscationName: TypeAlias = Literal["none", "masks"]
StalenessName: TypeAlias = Literal["drop", "keep", "weight"]
Completion: TypeAlias = Literal["completeness", "deadline", "cadence", "immediate"]
AttackName: TypeAlias = Literal["none", "label_flip", "sign_flip", "gaussian"]
OptionValue: TypeAlias = bool | int | float | str

BUILT_IN_LEARNER = "unlinkabledfl.experiment.learners:classifier"


class Learning(Section):
    """The learning task of every node."""

    dataset: DatasetName = setting("fashion-mnist-mini", "Which labelled images are divided among the nodes.")
    model: ModelName = setting("lenet5", "What every node trains.")
    partition: PartitionName = setting("dirichlet", "The law by which samples fall to nodes.")
    alpha: float = setting(
        10.0, "Concentration of `dirichlet`; the smaller, the more a node's classes differ.", symbol="α", gt=0, le=1e6
    )
    shards_per_node: int = setting(2, "With `shards`: how many pieces of one class a node gets.", ge=1, le=10_000)
    optimizer: Literal["sgd", "adamw"] = setting("sgd", "How gradients change the model.")
    learning_rate: float = setting(0.01, "Step size of local training.", symbol="η", gt=0, le=100)
    momentum: float = setting(0.9, "Momentum of `sgd`.", ge=0, lt=1)
    nesterov: bool = setting(False, "Whether momentum looks ahead.")
    weight_decay: float = setting(0.0, "L2 penalty of the parameters.", ge=0, le=10)
    batch_size: int = setting(8, "Samples a step.", unit="samples", ge=1, le=65_536)
    epochs: int = setting(1, "How often a round of training sees each local sample.", symbol="τ", ge=1, le=1_000)
    steps: int = setting(
        0, "Instead of epochs: how many batches a round of training takes. 0: epochs decide.", ge=0, le=10_000_000
    )
    seconds: float = setting(
        0.0, "Instead of epochs: how long a round of training takes. 0: epochs decide.", unit="s", ge=0, le=86_400
    )
    schedule: Literal["constant", "linear", "cosine"] = setting("constant", "How the learning rate falls over rounds.")
    steady_rounds: float = setting(
        0.0, "Over how many rounds the learning rate stays whole before it falls.", unit="rounds", ge=0, le=1e5
    )
    final_rate: float = setting(0.0, "What is left of the learning rate after the last round.", ge=0, le=1)
    warmup_rounds: float = setting(0.0, "Over how many rounds the learning rate rises.", unit="rounds", ge=0, le=1e5)
    label_smoothing: float = setting(0.0, "How much of a label's weight goes to all classes alike.", ge=0, lt=1)
    centralize: bool = setting(False, "Whether the gradient of each filter or row of weights loses its mean.")
    flip: bool = setting(False, "Whether training mirrors images at random.")
    shift_pixels: int = setting(0, "By how far training moves images at random.", unit="pixels", ge=0, le=64)
    dp_noise: float = setting(
        0.0, "Noise of differentially private training, in clipping norms; 0: not private.", symbol="σ", ge=0, le=1e4
    )
    dp_clip: float = setting(1.0, "The longest that one sample's gradient may be.", gt=0, le=1e6)
    dp_delta: float = setting(1e-5, "The δ at which ε is told.", symbol="δ", gt=0, lt=1)
    device: Literal["cpu", "cuda", "auto"] = setting("cpu", "Where training runs; `auto`: on a GPU if there is one.")
    train_samples: int = setting(
        0, "How many training samples are divided among all nodes, drawn by the seed; 0: all.", unit="samples", ge=0
    )
    test_samples: int = setting(
        0, "On how many test samples a node measures its model, the same on all nodes; 0: all.", unit="samples", ge=0
    )
    training_time_s: float = setting(
        2.0,
        "Virtual world: how long a round of training takes. 0: as long as it was measured to take here, and then no two"
        " runs are alike.",
        unit="s",
        ge=0,
        le=86_400,
    )
    factory: str = setting(
        BUILT_IN_LEARNER,
        "Who makes a node's learner: `package.module:function`. The built-in one trains `model` on `dataset`.",
        pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$",
        max_length=256,
    )
    options: dict[str, OptionValue] = setting(
        {}, "What a learner of your own finds among its settings.", max_length=256
    )


class Payload(Section):
    """How a model becomes fragments."""

    codec: CodecName = setting(
        "fit",
        "How values are written: `fit` fills packets, `q4` to `q8` take so many bits before lossless coding, `f32` is"
        " exact.",
    )
    bits: float = setting(4.25, "What `fit` plans for a value.", unit="bits", ge=3, le=8)
    ratio: float = setting(1.0, "Which share of its fragments a node sends in a round.", symbol="r", gt=0, le=1)
    selection: SelectionName = setting("random", "Which ones, when it sends only a share.")
    error_feedback: bool = setting(False, "Whether what quantization took from a fragment is added to the next.")
    bound: float = setting(1e4, "Fragments with a value beyond it are refused.", gt=0, le=1e30)
    obfuscation: ObfuscationName = setting(
        "none",
        "What keeps a destination from recognising senders by the values they send: `masks` is noise that senders share"
        " in pairs and that cancels in the mean.",
    )
    obfuscation_scale: float = setting(
        3.0, "Deviation of a mask, in units of 1/√fan-in: how large weights are about.", gt=0, le=1e3
    )
    obfuscation_peers: int = setting(
        256, "With how many other senders a mask is shared at most; any of these, if it colludes with the destination,"
        " recognises the fragment.", unit="peers", ge=2, le=10_000,
    )  # fmt: skip


class Aggregation(Section):
    """What becomes of the fragments, and when a round ends."""

    rule: RuleName = setting("fragfedavg", "How the candidates for an index range are combined.")
    byzantine: int = setting(
        0, "How many of them the rule holds for malicious.", symbol="B", unit="peers", ge=0, le=100_000
    )
    staleness: StalenessName = setting(
        "drop", "Fragments of earlier rounds: dropped, kept like others, or weighted less the older they are."
    )
    staleness_window: int = setting(
        2, "From how many rounds back or ahead a fragment is taken at all.", unit="rounds", ge=0, le=1_000
    )
    staleness_decay: float = setting(0.5, "With `weight`: what a round of age leaves of the weight.", gt=0, le=1)
    completion: Completion = setting(
        "completeness",
        "When the exchange ends: when all expected fragments and acknowledgements are there or the deadline passes; at"
        " the deadline; at a fixed pace; or at once, with what came until then.",
    )
    deadline_s: float = setting(
        0.0, "How long an exchange may take at most; 0: derived from the delays.", unit="s", ge=0, le=86_400
    )
    cadence_s: float = setting(60.0, "With `cadence`: from one round's begin to the next.", unit="s", gt=0, le=86_400)
    trigger_change: float = setting(
        0.0, "A model that training moved by less, relative to its norm, is not sent; 0: always sent.", ge=0, le=1
    )


class Attack(Section):
    """Malicious learners, for experiments on robustness."""

    kind: AttackName = setting("none", "What the malicious nodes do to their model before they send it.")
    nodes: int = setting(0, "How many there are; the seed chooses which.", symbol="b", unit="nodes", ge=0, le=100_000)
    magnitude: float = setting(
        0.0,
        "How much: the noise in deviations of the honest update (10), how far the update is turned around (1), the"
        " share of labels that are flipped (1). 0: the number in parentheses.",
        ge=0,
        le=1e6,
    )
    chosen: tuple[int, ...] = setting(
        (), "Exactly these nodes instead of a random choice.", strict=False, max_length=10_000
    )
