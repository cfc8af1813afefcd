"""Local learning with PyTorch: models, data, training, poisoning, and the worker process that trains beside a mix."""
