"""Real nodes in containers of this host: the engine that runs them, what each is given, and who keeps them."""
