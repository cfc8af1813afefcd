"""One peer's mix, as small machines without I/O: `mix_node.MixNode` composes them, `config` builds it."""
