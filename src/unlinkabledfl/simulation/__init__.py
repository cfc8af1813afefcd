"""Virtual time: many nodes in one process, driven from one heap, reproducible from a seed."""

from unlinkabledfl.simulation.collector import collector_paused
from unlinkabledfl.simulation.entropy import SeededEntropy, chances
from unlinkabledfl.simulation.faults import Crash, Fault, Partition, Restart, draw_churn
from unlinkabledfl.simulation.host import NodeFactory, SimulatedNode
from unlinkabledfl.simulation.learners import Learning, LearningNode, Listener, Outcome, Training, Work
from unlinkabledfl.simulation.links import LinkPlan, LinkSettings
from unlinkabledfl.simulation.log import EventLog, Observer
from unlinkabledfl.simulation.records import MessageRecord, QueueMaximum, Result
from unlinkabledfl.simulation.sealed import SealedPackets
from unlinkabledfl.simulation.world import QueueProbe, Watch, World

__all__ = [
    "Crash",
    "EventLog",
    "Fault",
    "Learning",
    "LearningNode",
    "LinkPlan",
    "LinkSettings",
    "Listener",
    "MessageRecord",
    "NodeFactory",
    "Observer",
    "Outcome",
    "Partition",
    "QueueMaximum",
    "QueueProbe",
    "Restart",
    "Result",
    "SealedPackets",
    "SeededEntropy",
    "SimulatedNode",
    "Training",
    "Watch",
    "Work",
    "World",
    "chances",
    "collector_paused",
    "draw_churn",
]
