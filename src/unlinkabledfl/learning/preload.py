"""What the forkserver of learners imports once, so that every learner shares it. Importing this module has effects.

Threads are limited before the libraries start, because a forked learner trains on one core, and because a fork
carries no threads along. `torch._dynamo` is what the first optimizer of a process imports: 800 modules, 80 MiB. The
frozen garbage collector does not touch the shared pages, so they stay shared.

What PyTorch sets up when it first trains and measures a model would be set up by every learner for itself. So a small
model goes through a round here; that saves a third of a learner's private memory. It starts no thread, and the numbers
that it draws are not those of any run.
"""

import gc
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# ruff: noqa: E402 - the imports come after the limits
import numpy as np
import torch
import torch._dynamo

import unlinkabledfl.learning.worker_process
from unlinkabledfl.learning.images import Images
from unlinkabledfl.learning.models import build_model
from unlinkabledfl.learning.pytorch_learner import PyTorchLearner


def _rehearse() -> None:
    pixels, labels = np.zeros((16, 1, 28, 28), np.uint8), np.zeros(16, np.int64)
    images = Images(pixels, labels)
    learner = PyTorchLearner(build_model("lenet5", (1, 28, 28), 10, seed=1), images, images)
    learner.train(1)
    learner.evaluate()
    learner.load(learner.state())


torch.set_num_threads(1)
_rehearse()
unlinkabledfl.learning.worker_process.give_back_memory()
gc.collect()
gc.freeze()
