"""The features that are active on a private chain from its first block, and the length of its
generation periods.

What lives here: the options that choose them, the network that has them, and remembering them in a
data directory: a chain keeps those that it was begun with. What does not: what a feature does
(``soliton.ledger``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.chain.features import IMPLEMENTED
from soliton.chain.networks.model import Network
from soliton.controls.dump import BEFORE
from soliton.errors import EnvironmentProblem, InputError
from soliton.storage.files import replace_file

UNTIL: Final[dict[str, tuple[int, ...]]] = {
    "1.0": tuple(range(1, 14)),
    "1.1": tuple(range(1, 15)),
    "1.2": tuple(range(1, 16)),
    "1.3": tuple(range(1, 17)),
    "1.4": tuple(range(1, 19)),
    "1.5": tuple(range(1, 21)),
    "1.6": (*range(1, 21), 22, 24, 25),
}
"""The features of each version of the reference node: those of 1.5 and 1.6 are what its
private-node images have (wavesplatform/Waves ``docker/private/waves.custom.conf``).
"""
DEFAULT: Final = tuple(range(1, 26))
"""The features without options, those of the network ``devnet``. Feature 26 is by option: it sets
a reward of 20 coins, which clients of private chains do not expect.
"""
DEFAULT_PERIOD: Final = 100
"""Blocks of a generation period of one node: the first ones, without a commitment, are many enough
for most tests, and few enough to be mined at once.
"""
SHARED_PERIOD: Final = 5
"""The same where several nodes make blocks by the clock, so that they are final in seconds."""
MAX_PERIOD: Final = 1_000_000
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


class Chosen(msgspec.Struct, frozen=True, rename="camel"):
    """The features of a chain and the length of its generation periods, in blocks."""

    features: tuple[int, ...]
    generation_period: int = DEFAULT_PERIOD


class Wanted(NamedTuple):
    """What options say of a chain; ``None`` for what they leave open."""

    features: tuple[int, ...] | None = None
    generation_period: int | None = None

    def begun(self, period: int = DEFAULT_PERIOD) -> Chosen:
        """Return what a chain that begins now has, with the default length of a period."""
        features = DEFAULT if self.features is None else self.features
        return Chosen(features, self.generation_period or period)

    def kept(self, found: Chosen, place: object) -> Chosen:
        """Return what an existing chain has; raises ``FeaturesRefused`` if that is not what is
        wanted.
        """
        others = (
            self.features or found.features,
            self.generation_period or found.generation_period,
        )
        if Chosen(*others) != found:
            raise FeaturesRefused(
                f"{place} holds a chain that was begun with --features {as_text(found.features)} "
                f"--generation-period {found.generation_period}: give the same, or none"
            )
        return found


def network_of(network: Network, chosen: Chosen) -> Network:
    """Return the private chain's network with these features and no others."""
    usual = network.functionality.pre_activated_features
    functionality = msgspec.structs.replace(
        network.functionality,
        pre_activated_features={each: usual.get(each, 0) for each in chosen.features},
        generation_period_length=chosen.generation_period,
    )
    return msgspec.structs.replace(network, functionality=functionality)


def remembered(directory: Path, wanted: Wanted, *, is_new: bool) -> Chosen:
    """Return the features of a chain, and note those of one that is begun.

    Raises ``FeaturesRefused``, ``EnvironmentProblem``.
    """
    path = directory / _FILE
    if is_new:
        chosen = wanted.begun()
        replace_file(path, [msgspec.json.encode(chosen)])
        return chosen
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Chosen | tuple[int, ...])
    except FileNotFoundError:
        found = BEFORE
    except (OSError, msgspec.DecodeError) as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error}") from error
    return wanted.kept(found if isinstance(found, Chosen) else Chosen(found), directory)


def as_text(features: tuple[int, ...]) -> str:
    """Return features as the option takes them."""
    return ",".join(map(str, features))
