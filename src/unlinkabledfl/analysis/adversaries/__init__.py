"""The adversaries, one file each."""

from unlinkabledfl.analysis.adversaries.disclosure import DisclosureAdversary
from unlinkabledfl.analysis.adversaries.flow import FlowAdversary
from unlinkabledfl.analysis.adversaries.grouping import GroupingAdversary
from unlinkabledfl.analysis.adversaries.paper import PaperAdversary
from unlinkabledfl.analysis.adversaries.protocol import Adversary, Posteriors
from unlinkabledfl.analysis.adversaries.route import RouteAdversary

__all__ = [
    "Adversary",
    "DisclosureAdversary",
    "FlowAdversary",
    "GroupingAdversary",
    "PaperAdversary",
    "Posteriors",
    "RouteAdversary",
]
