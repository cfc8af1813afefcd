"""Who is where: the operator's word first, then what peers say of themselves."""

import pytest

from tests.unit.transport.virtual import node_id
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.descriptor import Descriptor, parse, sign
from unlinkabledfl.transport.book import Contact, Contacts

OURS, THEIRS = bytes([1]) * 32, bytes([2]) * 32


def descriptor(*addresses: str, fingerprint: bytes = THEIRS) -> Descriptor:
    return sign(
        bytes(32),
        serial=1,
        epoch=1,
        public_key=b"key",
        fingerprint=fingerprint,
        valid_until_s=1,
        addresses=addresses,
    )


def book(contact: Contact | None = None, found: Descriptor | None = None) -> Contacts:
    given = {} if contact is None else {node_id(1): contact}
    return Contacts(given, described=lambda peer: found if peer == node_id(1) else None)


def test_a_peer_is_found_by_its_descriptor() -> None:
    found = book(found=descriptor("peer.example:4433")).contact(node_id(1))

    assert found == Contact(fingerprint=THEIRS, addresses=("peer.example:4433",))


def test_the_operators_certificate_counts_and_all_addresses_are_tried_his_first() -> None:
    contact = Contact(fingerprint=OURS, addresses=("10.0.0.1:1", "10.0.0.2:2"))

    found = book(contact, descriptor("10.0.0.3:3", "10.0.0.1:1")).contact(node_id(1))

    assert found == Contact(fingerprint=OURS, addresses=("10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3"))


def test_contacts_that_are_added_later_count() -> None:
    given = {node_id(2): Contact(fingerprint=THEIRS)}
    contacts = Contacts(given)
    assert contacts.contact(node_id(1)) is None

    given[node_id(1)] = Contact(fingerprint=OURS)

    assert contacts.contact(node_id(1)) == Contact(fingerprint=OURS)


def test_strangers_are_refused() -> None:
    stranger = descriptor()

    assert not book().admit(stranger.node_id, fingerprint=THEIRS, introduction=stranger.data)


def test_a_stranger_is_welcome_by_its_own_descriptor_of_its_own_certificate_if_the_policy_says_so() -> None:
    stranger = descriptor("peer.example:4433")

    def read(data: bytes) -> Descriptor:
        return parse(data, now_s=0.0, allow_loopback=False, accepts_key=lambda _: True)

    def admits(*, by: bool = True, fingerprint: bytes = THEIRS, introduction: bytes = stranger.data) -> bool:
        contacts = Contacts({}, parse=read, welcomes=lambda found: by and found == stranger)
        return contacts.admit(stranger.node_id, fingerprint=fingerprint, introduction=introduction)

    assert admits()
    assert not admits(by=False)
    assert not admits(fingerprint=OURS)
    assert not admits(introduction=b"let me in")
    assert not admits(introduction=stranger.data[:-1] + b"x")
    assert not Contacts({}, parse=read, welcomes=lambda _: True).admit(
        node_id(2), fingerprint=THEIRS, introduction=stranger.data
    )


def test_a_fingerprint_of_the_wrong_length_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError) as refused:
        Contact(fingerprint=b"short")

    assert refused.value.key == "node.contacts.fingerprint"


@pytest.mark.parametrize("address", ["", "peer.example", "peer.example:0", "peer.example:70000", "[::1:80", "a b:80"])
def test_an_address_that_cannot_be_one_is_the_operators_mistake(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Contact(fingerprint=OURS, addresses=(address,))

    assert (refused.value.key, refused.value.got) == ("node.contacts.addresses", address)
