"""Whether a dataset has the samples that a scenario asks of it, known without opening it."""

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.model_sizes import TEST_SAMPLES, TRAIN_SAMPLES
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER

__all__ = ["check_data"]


def check_data(scenario: Scenario) -> None:
    """ConfigError where there are too few; learners of another factory know their own data."""
    learning, nodes = scenario.learning, scenario.topology.nodes
    if learning.factory != BUILT_IN_LEARNER:
        return
    for key, wanted, have in (
        ("learning.train_samples", learning.train_samples, TRAIN_SAMPLES[learning.dataset]),
        ("learning.test_samples", learning.test_samples, TEST_SAMPLES[learning.dataset]),
    ):
        if wanted > have:
            raise ConfigError(key=key, got=wanted, takes=f"at most {have:,}: {learning.dataset} has no more; 0 for all")
    samples = learning.train_samples or TRAIN_SAMPLES[learning.dataset]
    if nodes > samples:
        raise ConfigError(
            key="topology.nodes", got=nodes, takes=f"at most {samples:,}: every node needs one of the training samples"
        )
    if learning.partition == "shards" and nodes * learning.shards_per_node > samples:
        raise ConfigError(
            key="learning.shards_per_node",
            got=learning.shards_per_node,
            takes=f"at most {samples // nodes} with {nodes} nodes and {samples:,} samples",
        )
