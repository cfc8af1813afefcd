"""Tests run side by side, so each computes on one core, as learners do."""

import torch

torch.set_num_threads(1)
