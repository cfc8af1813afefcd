"""Write the golden vectors of the packet, with the reference implementation and nothing else.

    python -m tests.vectors.make_sphinx                     all files
    python -m tests.vectors.make_sphinx x25519-5-10240      one of them

Every run writes the same bytes. How to read a file stands in its own `reading`.
"""

import base64
import json
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.reference import sphinx_reference as ref

HERE = Path(__file__).parent
FORMATS = (
    # With the default body, every header that there can be; of the hybrid ones, every one that this body has room for.
    *(ref.Format(key_layer="x25519", max_hops=hops, body_bytes=10_240) for hops in range(1, 11)),
    *(ref.Format(key_layer="pq", max_hops=hops, body_bytes=10_240) for hops in range(1, 8)),
    ref.Format(key_layer="x25519-kem", max_hops=5, body_bytes=10_240),
    # Short packets.
    ref.Format(key_layer="x25519", max_hops=3, body_bytes=2_048),
    ref.Format(key_layer="x25519", max_hops=1, body_bytes=1_024),
)
EVERY_LENGTH = 10
"""The file with so many hops has a packet for a path of every length."""
READING = [
    "The format is docs/packet.md, version 1. Numbers are decimal. Byte strings are hex; those named",
    "*_base64 are base64. Of a long string there is its length, its SHA-256 and its first 64 bytes.",
    "SHAKE256(x, n): n bytes of output for the ASCII string x.",
    "payload = SHAKE256(payload_label, payload_bytes).",
    "The sender's entropy is the stream SHAKE256(entropy_label, entropy_bytes), consumed from its beginning",
    "in the order of docs/packet.md. The encapsulations of the layer pq draw their randomness from elsewhere:",
    "its packets are there to be opened, and other implementations will not make the same ones.",
    "hops[i] is what node path[i].node makes of what it receives: the shared secret s, the replay tag, the",
    "command with its fields, and output: the next packet (forward), the payload (deliver) or the untouched",
    "body (reply).",
    "A reply starts from the SURB: packet is what its owner makes of it with the payload, opened is what its",
    "maker reads.",
    "refused: take the case's packet as it arrives at hops[hop], apply the edits in order, hand it to node;",
    "if refused_at differs from hop, it passes the hops between. Edits: [xor, offset, bytes], [write,",
    "offset, bytes], [length, n] (cut, or extended by zeros). twice: the packet has been processed before.",
]
DELAYS_US = (0, 4_294_967_295, 250_000, 1, 65_536, 999_999, 7, 1_000_000, 0, 123_456_789)

Json = dict[str, Any]


def pattern(label: str, length: int) -> bytes:
    return ref.shake256(label.encode(), length)


class Stream:
    """Entropy that can be replayed: the bytes of SHAKE256(label), in order. `used` counts them."""

    def __init__(self, label: str) -> None:
        self._label = label.encode()
        self.used = 0

    def __call__(self, length: int) -> bytes:
        self.used += length
        return ref.shake256(self._label, self.used)[self.used - length :]


def file_name(form: ref.Format) -> str:
    return f"sphinx-{form.key_layer}-{form.max_hops}-{form.body_bytes}.json"


def digest(data: bytes) -> Json:
    return {"bytes": len(data), "sha256": sha256(data).hexdigest(), "head": data[:64].hex()}


def edited(packet: bytes, edits: Sequence[Sequence[Any]]) -> bytes:
    """The packet after the edits of an entry of `refused`."""
    data = bytearray(packet)
    for edit in edits:
        match edit:
            case ["length", int(length)]:
                data = data[:length].ljust(length, b"\0")
            case ["write", int(offset), str(text)]:
                data[offset : offset + len(text) // 2] = bytes.fromhex(text)
            case ["xor", int(offset), str(text)]:
                for index, value in enumerate(bytes.fromhex(text), offset):
                    data[index] ^= value
            case _:
                raise ValueError(f"not an edit: {edit!r}")
    return bytes(data)


class Maker:
    """Makes the content of one file."""

    def __init__(self, form: ref.Format) -> None:
        self._form = form
        self._label = f"unlinkabledfl/vectors/{form.key_layer}/{form.max_hops}/{form.body_bytes}"
        # One node more than any path needs: somebody to whom a packet is not addressed.
        self._privates = [pattern(f"{self._label}/node/{i}", 32) for i in range(form.max_hops + 1)]
        self._ids = [pattern(f"{self._label}/id/{i}", 32) for i in range(form.max_hops + 1)]
        self._publics = [ref.public_key(form, private) for private in self._privates]

    def content(self) -> Json:
        form = self._form
        lengths = sorted({1, min(2, form.max_hops), form.max_hops})
        every = range(1, form.max_hops + 1) if form.max_hops == EVERY_LENGTH else lengths
        cases = [self._forward(range(n)) for n in every]
        cases += [self._reply(range(n - 1, -1, -1)) for n in lengths]
        cases.append(self._crafted())
        return {
            "reading": READING,
            "geometry": {
                "key_layer": form.key_layer,
                "max_hops": form.max_hops,
                "body_bytes": form.body_bytes,
                "element_bytes": form.element_bytes,
                "carried_bytes": form.carried_bytes,
                "slot_bytes": form.slot_bytes,
                "beta_bytes": form.beta_bytes,
                "header_bytes": form.header_bytes,
                "packet_bytes": form.packet_bytes,
                "payload_bytes": form.payload_bytes,
                "surb_bytes": form.surb_bytes,
            },
            "nodes": [
                {"id": node_id.hex(), "private_key": private.hex(), "public_key": digest(public)}
                for node_id, private, public in zip(self._ids, self._privates, self._publics, strict=True)
            ],
            "cases": cases,
            "refused": self._refused(lengths[-1]),
        }

    def _path(self, nodes: Sequence[int]) -> list[ref.PathHop]:
        return [
            ref.PathHop(node_id=self._ids[node], public_key=self._publics[node], delay_us=DELAYS_US[position])
            for position, node in enumerate(nodes)
        ]

    def _case(self, name: str, nodes: Sequence[int], make: Callable[[list[ref.PathHop], Stream], Json]) -> Json:
        entropy = Stream(f"{self._label}/entropy/{name}")
        path = self._path(nodes)
        made = make(path, entropy)
        steps = [{"node": node, "delay_us": hop.delay_us} for node, hop in zip(nodes, path, strict=True)]
        return {
            "name": name,
            "path": steps,
            "payload_label": f"{self._label}/payload/{name}",
            "entropy_label": f"{self._label}/entropy/{name}",
            "entropy_bytes": entropy.used,
            **made,
        }

    def _forward(self, nodes: Sequence[int]) -> Json:
        name = f"forward, {len(nodes)} of {self._form.max_hops} hops"

        def make(path: list[ref.PathHop], entropy: Stream) -> Json:
            payload = pattern(f"{self._label}/payload/{name}", self._form.payload_bytes)
            packet = ref.wrap(self._form, path, payload, entropy=entropy)
            return {
                "payload_sha256": sha256(payload).hexdigest(),
                "packet_base64": base64.b64encode(packet).decode(),
                "hops": self._hops(packet, nodes),
            }

        return self._case(name, nodes, make)

    def _reply(self, nodes: Sequence[int]) -> Json:
        name = f"reply, {len(nodes)} of {self._form.max_hops} hops"

        def make(path: list[ref.PathHop], entropy: Stream) -> Json:
            payload = pattern(f"{self._label}/payload/{name}", self._form.payload_bytes)
            surb, secrets = ref.make_surb(self._form, path, entropy=entropy)
            first_hop, packet = ref.reply(self._form, surb, payload)
            body = self._outputs(packet, nodes)[-1].output
            return {
                "payload_sha256": sha256(payload).hexdigest(),
                "surb_base64": base64.b64encode(surb).decode(),
                "surb_id": secrets.surb_id.hex(),
                "seed": secrets.seed.hex(),
                "payload_keys": [key.hex() for key in secrets.payload_keys],
                "first_hop": first_hop.hex(),
                "packet": digest(packet),
                "hops": self._hops(packet, nodes),
                "opened": digest(ref.open_reply(self._form, secrets, body)),
            }

        return self._case(name, nodes, make)

    def _crafted(self) -> Json:
        """A packet of one hop, good but for its command."""
        name = "unknown command"

        def make(path: list[ref.PathHop], entropy: Stream) -> Json:
            payload = pattern(f"{self._label}/payload/{name}", self._form.payload_bytes)
            packet, _ = ref.wrap_traced(self._form, path, payload, entropy=entropy, command=4)
            return {
                "payload_sha256": sha256(payload).hexdigest(),
                "packet_base64": base64.b64encode(packet).decode(),
                "hops": [],
            }

        return self._case(name, [0], make)

    def _outputs(self, packet: bytes, nodes: Sequence[int]) -> list[ref.Peeled]:
        peeled = []
        for node in nodes:
            peeled.append(ref.process(self._form, packet, private=self._privates[node], seen=set()))
            packet = peeled[-1].output
        return peeled

    def _hops(self, packet: bytes, nodes: Sequence[int]) -> list[Json]:
        return [
            {"node": node, **described(step)} for node, step in zip(nodes, self._outputs(packet, nodes), strict=True)
        ]

    def _refused(self, longest: int) -> list[Json]:
        form, last = self._form, longest - 1
        beta_at = form.element_bytes
        gamma_at = beta_at + form.beta_bytes
        body_at = form.header_bytes
        single = f"forward, 1 of {form.max_hops} hops"
        whole = f"forward, {longest} of {form.max_hops} hops"

        def entry(name: str, case: str, cause: str, edits: list[list[Any]], **changes: Any) -> Json:
            where = {"hop": 0, "refused_at": 0, "node": 0, "twice": False, **changes}
            return {"name": name, "case": case, **where, "edits": edits, "cause": cause}

        at_end = {"hop": last, "refused_at": last, "node": last}
        return [
            entry("one byte short", single, "bad_length", [["length", form.packet_bytes - 1]]),
            entry("one byte long", single, "bad_length", [["length", form.packet_bytes + 1]]),
            entry("empty", single, "bad_length", [["length", 0]]),
            entry("α of order one", single, "bad_element", [["write", 0, bytes(form.element_bytes).hex()]]),
            entry("α, first bit", single, "bad_mac", [["xor", 0, "80"]]),
            entry("α, the bit that X25519 ignores", single, "bad_mac", [["xor", beta_at - 1, "80"]]),
            entry("β, first bit", single, "bad_mac", [["xor", beta_at, "80"]]),
            entry("β, last bit, at the last hop", whole, "bad_mac", [["xor", gamma_at - 1, "01"]], **at_end),
            entry("γ, last bit, at the last hop", whole, "bad_mac", [["xor", body_at - 1, "01"]], **at_end),
            entry("δ, first bit", single, "bad_payload", [["xor", body_at, "80"]]),
            entry(
                "δ, last bit, at the last hop",
                whole,
                "bad_payload",
                [["xor", form.packet_bytes - 1, "01"]],
                **at_end,
            ),
            entry(
                "δ, last bit, marked at the first hop",
                whole,
                "bad_payload",
                [["xor", form.packet_bytes - 1, "01"]],
                refused_at=last,
            ),
            entry("for somebody else", single, "bad_mac", [], node=form.max_hops),
            entry("a second time", single, "replayed", [], twice=True),
            entry("unknown command", "unknown command", "bad_command", []),
        ]


def described(step: ref.Peeled) -> Json:
    """A hop as the vectors store it."""
    name = {ref.FORWARD: "forward", ref.DELIVER: "deliver", ref.REPLY: "reply"}[step.command]
    fields: Json = {
        "shared_secret": step.keys.secret.hex(),
        "replay_tag": step.keys.replay_tag.hex(),
        "command": name,
    }
    match step.command:
        case ref.FORWARD:
            fields |= {"next_hop": step.node_id.hex(), "delay_us": step.delay_us}
        case ref.DELIVER:
            fields |= {"delay_us": step.delay_us}
        case ref.REPLY:
            fields |= {"surb_id": step.node_id.hex()}
    return {**fields, "output": digest(step.output)}


def render(content: Json) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main(names: Sequence[str]) -> None:
    for form in FORMATS:
        if not names or file_name(form) in {f"sphinx-{name}.json" for name in names}:
            (HERE / file_name(form)).write_text(render(Maker(form).content()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
