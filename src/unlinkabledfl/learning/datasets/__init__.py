"""Datasets: fetched once per host, compared with their published checksums, mapped by every process that learns."""

from unlinkabledfl.learning.datasets.catalogue import CATALOGUE, DEFAULT
from unlinkabledfl.learning.datasets.dataset import Dataset, Splits
from unlinkabledfl.learning.datasets.progress import NoProgress, Progress
from unlinkabledfl.learning.datasets.store import Fetched, data_directory, get, load, state, verify

__all__ = [
    "CATALOGUE",
    "DEFAULT",
    "Dataset",
    "Fetched",
    "NoProgress",
    "Progress",
    "Splits",
    "data_directory",
    "get",
    "load",
    "state",
    "verify",
]
