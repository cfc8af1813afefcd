"""What a learner costs in memory: many workers on one host, each training LeNet-5, and their proportional set sizes.

PSS counts a page that n processes share as 1/n of a page for each of them. It is read while all of them train.
Linux only. `python -m benchmarks.learner_memory` prints it.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from unlinkabledfl.learning.worker import LearnerWorker
from unlinkabledfl.node.learner import Learner

WORKERS = 32
SAMPLES = 60_000 // WORKERS
BAR_MIB = 32.0


def lenet_on_noise(settings: Mapping[str, Any]) -> Learner:
    """Return a learner with a node's share of MNIST in size; what the pixels show does not matter here."""
    from unlinkabledfl.learning.images import Images
    from unlinkabledfl.learning.models import build_model
    from unlinkabledfl.learning.pytorch_learner import PyTorchLearner

    generator = np.random.default_rng(settings["seed"])
    pixels = generator.integers(0, 256, (settings["samples"], 1, 28, 28), dtype=np.uint8)
    images = Images(pixels, generator.integers(0, 10, settings["samples"]))
    return PyTorchLearner(build_model("lenet5", (1, 28, 28), 10, seed=1), images, images)


def measure_memory(*, workers: int = WORKERS, samples: int = SAMPLES) -> dict[str, Any]:
    """Start the workers, let all of them train, and read what each holds in the middle of it and afterwards."""
    started_s = time.perf_counter()
    factory = "benchmarks.learner_memory:lenet_on_noise"
    with ExitStack() as stack:
        learners = [
            stack.enter_context(LearnerWorker(factory, {"seed": seed, "samples": samples})) for seed in range(workers)
        ]
        ready_s = time.perf_counter() - started_s
        threads = [threading.Thread(target=learner.train, args=(1,)) for learner in learners]
        for thread in threads:
            thread.start()
        during: list[list[float]] = []
        while any(thread.is_alive() for thread in threads):
            during.append([pss_mib(learner.process_id) for learner in learners])
            threads[0].join(0.2)
        for thread in threads:
            thread.join()
        after = [pss_mib(learner.process_id) for learner in learners]
    means = [mean(reading) for reading in during] or [mean(after)]
    most = max([max(reading) for reading in during] or [max(after)])
    return {
        "workers": workers,
        "ready_s": ready_s,
        "pss_mib_training_mean": max(means),
        "pss_mib_training_max": most,
        "pss_mib_after_mean": mean(after),
    }


def pss_mib(process_id: int | None) -> float:
    """Return the proportional set size of a process in MiB."""
    text = Path(f"/proc/{process_id}/smaps_rollup").read_text(encoding="ascii")
    kib = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return kib / 1024


if __name__ == "__main__":
    for name, value in measure_memory().items():
        print(f"{name:24} {value:.2f}" if isinstance(value, float) else f"{name:24} {value}")
