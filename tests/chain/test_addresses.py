"""Addresses and aliases: recorded vectors, round trips, and text or bytes that are neither."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain import addresses
from soliton.chain.addresses import Alias
from soliton.chain.errors import AddressError
from soliton.crypto import base58
from soliton.errors import SolitonError
from tests.chain.strategies import addresses_of, aliases_of, chain_ids, texts
from tests.vectors import load_vectors, report

W = ord("W")
HERE = "3PQ8bp1aoqHQo3icNqFv6VM36V1jzPeaG1v"


def test_vectors() -> None:
    vectors = load_vectors("addresses")
    for vector in vectors:
        match vector["kind"]:
            case "from_public":
                made = addresses.from_public_key(
                    base58.decode(vector["public"]), ord(vector["scheme"])
                )
                assert base58.encode(made) == vector["address"]
            case "from_ethereum":
                key_hash = bytes.fromhex(vector["eth"][2:])
                made = addresses.from_public_key_hash(key_hash, ord(vector["scheme"]))
                assert addresses.public_key_hash(made) == key_hash
                assert base58.encode(made) == vector["address"]
            case "parse":
                raw = base58.decode(vector["address"])
                assert parses(vector["address"], raw[1]) is vector["valid"]
            case "alias":
                assert names(vector["alias"]) is vector["valid"]
            case kind:
                pytest.fail(f"unknown kind {kind}")
    report.ran("addresses", len(vectors))


def parses(text: str, chain_id: int) -> bool:
    try:
        addresses.parse_address(text, chain_id)
    except AddressError:
        return False
    return True


def names(name: str) -> bool:
    try:
        addresses.make_alias(name, W)
    except AddressError:
        return False
    return True


# What is wrong (first thing that is), and the words for it.
BAD_ADDRESSES = """
text                                       | words
                                           | Wrong addressBytes length: expected: 26, actual: 0
1                                          | Wrong addressBytes length: expected: 26, actual: 1
3PQ8bp1aoqHQo3icNqFv6VM36V1jzPeaG1         | Wrong addressBytes length: expected: 26, actual: 25
3PQ8bp1aoqHQo3icNqFv6VM36V1jzPeaG1w        | Bad address checksum
3MzrGSzM8FhSJzgJtUzpCdxVEX4hpH5Mz3Z        | Address belongs to another network: expected: 87(W)
3PQ8bp1aoqHQo3icNqFv6VM36V1jzPeaG1v11      | Wrong address string length: max=36, actual: 37
3PQ8bp1aoqHQo3icNqFv6VM36V1jzPeaG1O        | Unable to decode base58: requirement failed: Wrong char
"""


def cases(table: str) -> list[list[str]]:
    lines = table.strip("\n").splitlines()[1:]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.mark.parametrize(("text", "words"), cases(BAD_ADDRESSES))
def test_bad_addresses(text: str, words: str) -> None:
    with pytest.raises(AddressError) as caught:
        addresses.parse_address(text, W)
    assert str(caught.value).startswith(words)


def test_version_is_looked_at_before_the_chain() -> None:
    data = bytearray(addresses.parse_address(HERE, W))
    data[0], data[1] = 2, 0
    with pytest.raises(AddressError, match="Unknown address version: 2"):
        addresses.check_address(bytes(data), W)


BAD_ALIASES = """
text                                   | words
alias                                  | Alias string pattern is 'alias:<chain-id>:<address-alias>
alias:                                 | Alias string pattern is 'alias:<chain-id>:<address-alias>
alias:W                                | Alias string pattern is 'alias:<chain-id>:<address-alias>
alias:WT:name                          | Alias string pattern is 'alias:<chain-id>:<address-alias>
Alias:W:name                           | Alias string pattern is 'alias:<chain-id>:<address-alias>
alias::name                            | Alias string pattern is 'alias:<chain-id>:<address-alias>
alias:W:name:b                         | Alias should contain only following characters: -.0123
alias:W:abc                            | Alias 'abc' length should be between 4 and 30
alias:W:aaaaaaaaaabbbbbbbbbbccccccccccd | Alias 'aaaaaaaaaabbbbbbbbbbccccccccccd' length
alias:W:name!                          | Alias should contain only following characters: -.0123
alias:W:Name                           | Alias should contain only following characters: -.0123
"""


@pytest.mark.parametrize(("text", "words"), cases(BAD_ALIASES))
def test_bad_aliases(text: str, words: str) -> None:
    with pytest.raises(AddressError) as caught:
        addresses.parse_alias(text)
    assert str(caught.value).startswith(words)


def test_recipient_is_an_alias_when_it_says_so() -> None:
    assert addresses.parse_claimed_recipient("alias:W:name", W) == Alias(W, "name")
    assert addresses.parse_claimed_recipient(HERE, W) == base58.decode(HERE)
    assert addresses.parse_claimed_recipient(f"address:{HERE}", W) == base58.decode(HERE)
    assert addresses.parse_claimed_recipient("alias:T:name", W) == Alias(ord("T"), "name")
    assert addresses.recipient_text(Alias(W, "name")) == "alias:W:name"
    assert Alias(W, "name").to_bytes() == b"\2W\0\4name"


@pytest.mark.parametrize("length", [0, 19, 21, 26, 32])
def test_hash_of_another_length(length: int) -> None:
    with pytest.raises(AddressError, match=f"Invalid public key hash length: {length}"):
        addresses.from_public_key_hash(bytes(length), W)


@given(chain_ids.flatmap(addresses_of))
def test_address_round_trip(address: addresses.Address) -> None:
    chain_id = address[1]
    assert addresses.check_address(address, chain_id) == address
    assert addresses.parse_address(addresses.recipient_text(address), chain_id) == address
    key_hash = addresses.public_key_hash(address)
    assert addresses.from_public_key_hash(key_hash, chain_id) == address


@given(chain_ids.flatmap(aliases_of))
def test_alias_round_trip(alias: Alias) -> None:
    assert addresses.parse_claimed_recipient(alias.text(), alias.chain_id) == alias


@given(chain_ids.flatmap(addresses_of), st.integers(0, 26 * 8 - 1))
def test_no_flipped_bit_goes_unseen(address: addresses.Address, bit: int) -> None:
    data = bytearray(address)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AddressError):
        addresses.check_address(bytes(data), address[1])


@given(texts(), chain_ids)
def test_any_text_is_refused_with_a_type(text: str, chain_id: int) -> None:
    for parse in (addresses.parse_address, addresses.parse_claimed_recipient):
        for each in (text, f"address:{text}", f"alias:{text}"):
            with suppress(SolitonError):
                parse(each, chain_id)
