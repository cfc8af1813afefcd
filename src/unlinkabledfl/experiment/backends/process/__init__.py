"""Real nodes on this host: one forkserver, a mix process and a learner process a node, and who looks after them."""
