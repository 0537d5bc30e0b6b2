"""The route ``/wallet/seed``.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/WalletApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import row, table
from soliton.crypto import base58
from soliton.node.wallet import WalletError


class WalletSeed(msgspec.Struct, frozen=True, gc=False):
    """The seed of the wallet, in base58."""

    seed: str

    def __repr__(self) -> str:
        return "WalletSeed(…)"


def seed(request: Request) -> WalletSeed:
    """The seed of the node's wallet."""
    try:
        return WalletSeed(base58.encode(node_of(request).wallet.seed))
    except WalletError as error:
        raise errors.invalid_request(str(error)) from error


ROUTES: Final = table("wallet", "",
    row("GET /wallet/seed key=seeds", seed, "The seed of the node's wallet, in base58", WalletSeed,
        {"seed": "5Ljo3sVvwqm9kPPD3xaxsB7vtUrWVJVMwbPiDwrRhRWvDs1kFrpFkyiZ2SWRnxVm"},
        "CUSTOM_VALIDATION_ERROR"),
)  # fmt: skip
