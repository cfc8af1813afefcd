"""The adversaries, one file each."""

from unlinkabledfl.analysis.adversaries.flow import FlowAdversary
from unlinkabledfl.analysis.adversaries.paper import PaperAdversary
from unlinkabledfl.analysis.adversaries.protocol import Adversary, Posteriors
from unlinkabledfl.analysis.adversaries.route import RouteAdversary

__all__ = ["Adversary", "FlowAdversary", "PaperAdversary", "Posteriors", "RouteAdversary"]
