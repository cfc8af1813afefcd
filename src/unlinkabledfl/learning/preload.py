"""What the forkserver of learners imports once, so that every learner shares it. Importing this module has effects.

Threads are limited before the libraries start, because a forked learner trains on one core, and because a fork
carries no threads along. `torch._dynamo` is what the first optimizer of a process imports: 800 modules, 80 MiB. The
frozen garbage collector does not touch the shared pages, so they stay shared.
"""

import gc
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

# ruff: noqa: E402 - the imports come after the limits
import torch
import torch._dynamo

import unlinkabledfl.learning.pytorch_learner
import unlinkabledfl.learning.worker_process  # noqa: F401

torch.set_num_threads(1)
gc.collect()
gc.freeze()
