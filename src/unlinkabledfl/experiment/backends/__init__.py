"""Where a run takes place: virtual time in one process, or real time with a process a node."""
