"""The product against the golden vectors, and the vectors against the reference that wrote them."""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.reference import sphinx_reference as ref
from tests.unit.sphinx.nodes import Tags, load_key
from tests.vectors.make_sphinx import (
    FORMATS,
    HERE,
    Maker,
    Stream,
    described,
    digest,
    edited,
    file_name,
    pattern,
    render,
)
from unlinkabledfl.errors import PacketError
from unlinkabledfl.sphinx import (
    Deliver,
    Forward,
    Geometry,
    Hop,
    NodeId,
    PrivateKey,
    Reply,
    Sphinx,
    Surb,
    SurbKeys,
    Unwrapped,
)

Json = dict[str, Any]
FILES = sorted(path.name for path in HERE.glob("sphinx-*.json"))


class Vectors:
    """One file, and the product's objects for what it describes."""

    def __init__(self, name: str) -> None:
        self.content: Json = json.loads(Path(HERE / name).read_text(encoding="utf-8"))
        shape = self.content["geometry"]
        self.geometry = Geometry(
            max_hops=shape["max_hops"], body_bytes=shape["body_bytes"], key_layer=shape["key_layer"]
        )
        self.format = ref.Format(
            key_layer=shape["key_layer"], max_hops=shape["max_hops"], body_bytes=shape["body_bytes"]
        )
        self.codec = Sphinx(self.geometry)
        self.privates = [bytes.fromhex(node["private_key"]) for node in self.content["nodes"]]
        self.ids = [NodeId(bytes.fromhex(node["id"])) for node in self.content["nodes"]]
        self.keys = [load_key(self.codec, private) for private in self.privates]
        self.cases: dict[str, Json] = {case["name"]: case for case in self.content["cases"]}

    @property
    def reproducible(self) -> bool:
        return self.geometry.key_layer != "pq"

    def path(self, case: Json) -> list[Hop]:
        return [
            Hop(self.ids[step["node"]], self.keys[step["node"]].public_bytes, step["delay_us"]) for step in case["path"]
        ]

    def payload(self, case: Json) -> bytes:
        return pattern(case["payload_label"], self.geometry.payload_bytes)

    def arriving(self, case: Json, hop: int) -> bytes:
        """The case's packet as the hop receives it, according to the reference."""
        packet = base64.b64decode(case["packet_base64"])
        for step in case["path"][:hop]:
            packet = ref.process(self.format, packet, private=self.privates[step["node"]], seen=set()).output
        return packet


@pytest.fixture(params=FILES)
def vectors(request: pytest.FixtureRequest) -> Vectors:
    return Vectors(request.param)


def by_kind(vectors: Vectors, kind: str) -> list[Json]:
    return [case for name, case in vectors.cases.items() if name.startswith(kind)]


def stored_fields(result: Unwrapped, tags: Tags) -> Json:
    """A result of the product as the vectors store it, but for the secret, which the product does not show."""
    (replay_tag,) = tags.seen
    fields: Json = {"replay_tag": replay_tag.hex()}
    match result:
        case Forward(next_hop, delay_us, packet):
            fields |= {"command": "forward", "next_hop": next_hop.hex(), "delay_us": delay_us}
            fields["output"] = digest(packet)
        case Deliver(delay_us, payload):
            fields |= {"command": "deliver", "delay_us": delay_us, "output": digest(payload)}
        case Reply(surb_id, body):
            fields |= {"command": "reply", "surb_id": surb_id.hex(), "output": digest(body)}
    return fields


def product_hops(vectors: Vectors, packet: bytes, case: Json) -> tuple[list[Json], Unwrapped]:
    """What the product makes of the packet at every hop, and the last result."""
    hops: list[Json] = []
    result: Unwrapped = Forward(NodeId(b""), 0, packet)
    for step in case["path"]:
        assert isinstance(result, Forward)
        tags = Tags()
        result = vectors.codec.unwrap(result.packet, key=vectors.keys[step["node"]], replays=tags)
        hops.append({"node": step["node"], **stored_fields(result, tags)})
    return hops, result


def without_secret(hops: list[Json]) -> list[Json]:
    return [{name: value for name, value in hop.items() if name != "shared_secret"} for hop in hops]


def test_there_is_one_file_for_every_geometry_in_use() -> None:
    assert sorted(file_name(form) for form in FORMATS) == FILES


def test_the_geometry_derives_the_stored_lengths(vectors: Vectors) -> None:
    shape = vectors.content["geometry"]
    derived = [name for name in shape if name != "carried_bytes"]

    assert {name: getattr(vectors.geometry, name) for name in derived} == {name: shape[name] for name in derived}
    assert vectors.geometry.layer.carried_bytes == shape["carried_bytes"]


def test_private_keys_give_the_stored_public_keys(vectors: Vectors) -> None:
    keys: list[PrivateKey] = vectors.keys

    assert [digest(key.public_bytes) for key in keys] == [node["public_key"] for node in vectors.content["nodes"]]


def test_every_hop_makes_of_a_forward_packet_what_is_stored(vectors: Vectors) -> None:
    for case in by_kind(vectors, "forward"):
        hops, result = product_hops(vectors, base64.b64decode(case["packet_base64"]), case)

        assert hops == without_secret(case["hops"])
        assert isinstance(result, Deliver)
        assert result.payload == vectors.payload(case)
        assert sha256(result.payload).hexdigest() == case["payload_sha256"]


def test_every_hop_makes_of_a_reply_what_is_stored(vectors: Vectors) -> None:
    for case in by_kind(vectors, "reply"):
        surb = Surb.from_bytes(base64.b64decode(case["surb_base64"]), vectors.geometry)
        first_hop, packet = vectors.codec.reply(surb, vectors.payload(case))

        hops, result = product_hops(vectors, packet, case)

        assert surb.to_bytes() == base64.b64decode(case["surb_base64"])
        assert (first_hop.hex(), digest(packet)) == (case["first_hop"], case["packet"])
        assert hops == without_secret(case["hops"])
        assert isinstance(result, Reply)
        kept = SurbKeys(
            surb_id=bytes.fromhex(case["surb_id"]),
            seed=bytes.fromhex(case["seed"]),
            hop_keys=tuple(bytes.fromhex(key) for key in case["payload_keys"]),
        )
        opened = vectors.codec.open_reply(kept, result.body)
        assert (opened, digest(opened)) == (vectors.payload(case), case["opened"])


def test_the_stored_entropy_makes_the_stored_packets(vectors: Vectors) -> None:
    """Of the layer pq only the amount of entropy is comparable: its encapsulations draw from elsewhere."""
    for case in by_kind(vectors, "forward"):
        entropy = Stream(case["entropy_label"])
        packet = vectors.codec.wrap(vectors.path(case), vectors.payload(case), entropy=entropy)

        assert entropy.used == case["entropy_bytes"]
        if vectors.reproducible:
            assert packet == base64.b64decode(case["packet_base64"])


def test_the_stored_entropy_makes_the_stored_reply_blocks(vectors: Vectors) -> None:
    for case in by_kind(vectors, "reply"):
        entropy = Stream(case["entropy_label"])
        surb, keys = vectors.codec.make_surb(vectors.path(case), entropy=entropy)

        assert entropy.used == case["entropy_bytes"]
        assert (keys.surb_id.hex(), keys.seed.hex()) == (case["surb_id"], case["seed"])
        assert len(keys.hop_keys) == len(case["path"]) - 1
        if vectors.reproducible:
            assert surb.to_bytes() == base64.b64decode(case["surb_base64"])
            assert [key.hex() for key in keys.hop_keys] == case["payload_keys"]


def test_bad_packets_are_refused_where_and_why_it_is_stored(vectors: Vectors) -> None:
    found = [(entry["name"], *product_refusal(vectors, entry)) for entry in vectors.content["refused"]]

    assert found == [(entry["name"], entry["refused_at"], entry["cause"]) for entry in vectors.content["refused"]]


def product_refusal(vectors: Vectors, entry: Json) -> tuple[int, str]:
    """At which hop the product refuses the packet of the entry, and for what cause."""
    case = vectors.cases[entry["case"]]
    packet = edited(vectors.arriving(case, entry["hop"]), entry["edits"])
    tags = Tags()
    if entry["twice"]:
        vectors.codec.unwrap(packet, key=vectors.keys[entry["node"]], replays=tags)
    nodes = [step["node"] for step in case["path"][entry["hop"] :]]
    nodes[0] = entry["node"]
    for position, node in enumerate(nodes, entry["hop"]):
        try:
            result = vectors.codec.unwrap(packet, key=vectors.keys[node], replays=tags)
        except PacketError as refusal:
            return position, refusal.cause
        assert isinstance(result, Forward)
        packet = result.packet
    raise AssertionError("the packet was not refused")


def test_the_reference_still_writes_the_stored_files(vectors: Vectors) -> None:
    stored = (HERE / file_name(vectors.format)).read_text(encoding="utf-8")

    assert render(Maker(vectors.format).content()) == stored


def test_the_reference_makes_of_each_stored_packet_what_is_stored(vectors: Vectors) -> None:
    for case in vectors.cases.values():
        packet = base64.b64decode(case["packet_base64"]) if "packet_base64" in case else replied(vectors, case)
        hops = []
        for step in case["path"][: len(case["hops"])]:
            peeled = ref.process(vectors.format, packet, private=vectors.privates[step["node"]], seen=set())
            hops.append({"node": step["node"], **described(peeled)})
            packet = peeled.output

        assert hops == case["hops"]


def replied(vectors: Vectors, case: Json) -> bytes:
    return ref.reply(vectors.format, base64.b64decode(case["surb_base64"]), vectors.payload(case))[1]
