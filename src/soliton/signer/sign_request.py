"""The body of a signing request: the key, an idempotency id, and one or several items.

What lives here: the members of the body, and its limits. What does not: the items themselves
(``signable``).
"""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from soliton.signer.errors import NOT_JSON, WRONG_SHAPE, RequestRefused
from soliton.signer.measures import Kind
from soliton.signer.signable import MAX_PROOF_PLACE
from soliton.web.json_parts import has_more_parts

MAX_PACKAGE: Final = 256
MAX_PARTS: Final = 20_000
"""Objects, arrays and members of a body: enough for a package of calls with arguments."""
MAX_KEY_CHARACTERS: Final = 64
MAX_CONFIRMATIONS: Final = 100
FINALIZED: Final = "finalized"
"""In place of a number of confirmations: those that make a block final."""
MAX_WAIT_SECONDS: Final = 600
WAIT_SECONDS: Final = 60
_ID: Final = re.compile(r"[!-~]{1,128}")
_KINDS: Final = {kind.value: kind for kind in Kind if kind not in (Kind.BLOCK, Kind.MICROBLOCK)}
_DECODE: Final = msgspec.json.Decoder(float_hook=Decimal).decode
_MEMBERS: Final = frozenset((*_KINDS, "proofAt"))
_ENVELOPE: Final = frozenset(("key", "id", "package"))
_WAITING: Final = frozenset(("confirmations", "timeout"))


class Item(msgspec.Struct, frozen=True):
    """One thing to sign: its kind, its JSON, and the index of the proof."""

    kind: Kind
    value: Any
    proof_at: int | None


class SignRequest(msgspec.Struct, frozen=True):
    """A whole request. ``key`` is empty where the items name their sender. ``digest`` is the hash
    of the request, if it has an ``id``.
    """

    key: str
    id: str
    digest: str
    items: tuple[Item, ...]
    is_package: bool
    confirmations: int | str
    timeout: int
    raw: Any


def read_json(body: bytes) -> Any:  # noqa: ANN401 - whatever a client sends
    """Parse the object in a body; raises ``RequestRefused`` without the parser's message, which may
    quote a secret.
    """
    if has_more_parts(body, MAX_PARTS):
        message = f"the body has more than {MAX_PARTS} objects, arrays and members"
        raise RequestRefused(WRONG_SHAPE, message)
    try:
        value = _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise RequestRefused(NOT_JSON, "the body is no JSON object")
    return value


def read_sign_request(value: dict[str, Any], *, sends: bool = False) -> SignRequest:
    """Read a request; raises ``RequestRefused``. ``sends`` allows the members about waiting."""
    key, id_ = value.get("key", ""), value.get("id", "")
    if not isinstance(key, str) or len(key) > MAX_KEY_CHARACTERS:
        raise RequestRefused(WRONG_SHAPE, "key should be a name, an address or a public key", "key")
    if id_ != "" and (not isinstance(id_, str) or _ID.fullmatch(id_) is None):
        raise RequestRefused(WRONG_SHAPE, "id should be 1 to 128 visible characters", "id")
    package = value.get("package")
    known = _ENVELOPE | _WAITING if sends else _ENVELOPE
    rest = {name: item for name, item in value.items() if name not in known}
    if package is None:
        items: tuple[Item, ...] = (_item(rest, ""),)
    elif not isinstance(package, list) or not 0 < len(package) <= MAX_PACKAGE or rest:
        message = f"package should be a list of 1 to {MAX_PACKAGE} things, alone"
        raise RequestRefused(WRONG_SHAPE, message, "package")
    else:
        items = tuple(_item(each, f"package[{index}].") for index, each in enumerate(package))
    return SignRequest(
        key=key,
        id=id_,
        digest=_digest(value, _WAITING) if id_ else "",
        items=items,
        is_package=package is not None,
        confirmations=_confirmations(value),
        timeout=_whole(value, "timeout", WAIT_SECONDS, MAX_WAIT_SECONDS),
        raw=value,
    )


def _item(value: Any, path: str) -> Item:  # noqa: ANN401 - whatever a client sends
    kinds = [name for name in _KINDS if isinstance(value, dict) and name in value]
    if len(kinds) != 1 or not value.keys() <= _MEMBERS:
        what = ", ".join(_KINDS)
        raise RequestRefused(
            WRONG_SHAPE,
            f"{path or 'the body '}should have one of {what}; beside it key, id, proofAt",
            path.rstrip("."),
        )
    (name,) = kinds
    place = value.get("proofAt")
    if place is not None and (type(place) is not int or not 0 <= place <= MAX_PROOF_PLACE):
        message = f"{path}proofAt should be from 0 to {MAX_PROOF_PLACE}"
        raise RequestRefused(WRONG_SHAPE, message, f"{path}proofAt")
    return Item(_KINDS[name], value[name], place)


def _whole(value: dict[str, Any], name: str, default: int, most: int) -> int:
    found = value.get(name, default)
    if type(found) is not int or not 0 <= found <= most:
        raise RequestRefused(WRONG_SHAPE, f"{name} should be from 0 to {most}", name)
    return found


def _confirmations(value: dict[str, Any]) -> int | str:
    if value.get("confirmations") == FINALIZED:
        return FINALIZED
    try:
        return _whole(value, "confirmations", 0, MAX_CONFIRMATIONS)
    except RequestRefused:
        message = f"confirmations should be from 0 to {MAX_CONFIRMATIONS}, or {FINALIZED}"
        raise RequestRefused(WRONG_SHAPE, message, "confirmations") from None


def _digest(value: dict[str, Any], without: frozenset[str]) -> str:
    """Return the hash of a request, independent of the order of members and of ``without``."""
    hashed = {name: item for name, item in value.items() if name not in without}
    return hashlib.blake2b(to_text(hashed), digest_size=16).hexdigest()


def to_text(value: Any) -> bytes:  # noqa: ANN401 - what was read
    """Return canonical JSON, with sorted members."""
    return msgspec.json.encode(value, order="sorted", enc_hook=float)


def whose(item: Item) -> str:
    """Return the public key or address that an item names as its sender; empty for none."""
    if isinstance(item.value, dict):
        for name in ("senderPublicKey", "publicKey", "sender"):
            if isinstance(text := item.value.get(name), str) and text:
                return text[:MAX_KEY_CHARACTERS]
    return ""
