"""The features that are active on a private chain from its first block.

What lives here: the option that chooses them, the network that has them, and remembering them in a
data directory. What does not: what a feature does (``soliton.ledger``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.features import IMPLEMENTED
from soliton.chain.networks.model import Network
from soliton.errors import EnvironmentProblem, InputError
from soliton.storage.files import replace_file

UNTIL: Final = {
    "1.0": 13, "1.1": 14, "1.2": 15, "1.3": 16, "1.4": 18, "1.5": 20,
}  # fmt: skip
"""The last feature of each version of the reference node: those of 1.5 are what its private-node
images have (wavesplatform/Waves ``docker/private/waves.custom.conf`` of 1.4.20 to 1.5.7).
"""
MAX_CHARACTERS: Final = 500
_FILE: Final = "features.json"
_MAX_DIGITS: Final = 5


class FeaturesRefused(InputError):
    """A choice of features that a devnet cannot have."""


def read_features(text: str) -> tuple[int, ...]:
    """Return the numbers in a list such as ``1-14,16``; raises ``FeaturesRefused``."""
    found: set[int] = set()
    for part in text[: MAX_CHARACTERS + 1].replace(" ", "").split(","):
        first, _, last = part.partition("-")
        last = last if "-" in part else first
        if not (_is_number(first) and _is_number(last)) or len(text) > MAX_CHARACTERS:
            raise FeaturesRefused(f"{part[:40]!r} is no feature: expected a list such as 1-14,16")
        numbers = set(range(int(first), int(last) + 1))
        unknown = sorted(numbers - IMPLEMENTED)
        if unknown or not numbers:
            there = f"{min(IMPLEMENTED)} to {max(IMPLEMENTED)}"
            raise FeaturesRefused(f"{part}: there is no such feature here, only {there}")
        found |= numbers
    return tuple(sorted(found))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def features_until(version: str) -> tuple[int, ...]:
    """Return the features of a version of the reference node, a key of ``UNTIL``."""
    return tuple(sorted(each for each in IMPLEMENTED if each <= UNTIL[version]))


def network_of(network: Network, features: tuple[int, ...] | None) -> Network:
    """Return the private chain's network with these features and no others; ``None`` for its
    own.
    """
    if features is None:
        return network
    usual = network.functionality.pre_activated_features
    functionality = msgspec.structs.replace(
        network.functionality,
        pre_activated_features={each: usual.get(each, 0) for each in features},
    )
    return msgspec.structs.replace(network, functionality=functionality)


def remember_features(directory: Path, features: tuple[int, ...] | None, *, is_new: bool) -> None:
    """Note the features of a chain that is begun, or compare them with those it was begun with.

    Raises ``FeaturesRefused``, ``EnvironmentProblem``.
    """
    path = directory / _FILE
    if is_new and features is not None:
        replace_file(path, [msgspec.json.encode(features)])
        return
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=tuple[int, ...])
    except FileNotFoundError:
        kept = None
    except (OSError, msgspec.DecodeError) as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error}") from error
    if kept != features:
        begun = "without --features" if kept is None else f"with --features {as_text(kept)}"
        raise FeaturesRefused(f"{directory} holds a chain that was begun {begun}: give the same")


def as_text(features: tuple[int, ...]) -> str:
    """Return features as the option takes them."""
    return ",".join(map(str, features))
