"""The library for estimators: the costs of calls, and the names of values.

What lives here: the costs of functions and constructors, and the names of values, by version of
the language and kind of script. What does not: the functions (``soliton.ride.functions``).

The cost of a constructor is the number of its fields. From version 4 of the language on, estimators
do not know the constructors that sources cannot use.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/utils/package.scala`` and in
``v1/evaluator/ctx/impl`` ``PureContext.scala``, ``CryptoContext.scala``, ``GlobalValNames.scala``
and ``waves/{WavesContext,Types,Vals}.scala``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

from soliton.ride.functions import catalogue

_FIRST_WITH_CALLS: Final = 5


class CodeKind(Enum):
    """The kinds of code that is estimated, which differ in their functions."""

    EXPRESSION = "expression"
    DAPP = "dapp"
    DAPP_VERIFIER = "verifier"
    """The verifier of a dApp by the rules before version 6 of the language."""
    FREE_CALL = "call"
    """An expression that a transaction calls."""
    ANY = "any"
    """An expression of any kind."""


_CONSTRUCTORS: Final = """
1 Unit 0
1-3 Ceiling 0, Down 0, Floor 0, HalfDown 0, HalfEven 0, HalfUp 0, Up 0
3-3 NoAlg 0, Md5 0, Sha1 0, Sha224 0, Sha256 0, Sha384 0, Sha512 0
3-3 Sha3224 0, Sha3256 0, Sha3384 0, Sha3512 0
1 Address 1, Alias 1, AssetPair 2, Transfer 2, Order 14
8 Order 15
1-5 GenesisTransaction 6, PaymentTransaction 10, ReissueTransaction 11, BurnTransaction 10
1-4 MassTransferTransaction 14
5-5 MassTransferTransaction 13
1-5 ExchangeTransaction 14, TransferTransaction 13, SetAssetScriptTransaction 10
3-5 InvokeScriptTransaction 13
4-5 UpdateAssetInfoTransaction 11
1-5 IssueTransaction 14, LeaseTransaction 10, LeaseCancelTransaction 9
1-5 CreateAliasTransaction 9, SetScriptTransaction 9, SponsorFeeTransaction 10, DataTransaction 9
1-3 DataEntry 2
4 BooleanEntry 2, StringEntry 2, BinaryEntry 2, IntegerEntry 2, DeleteEntry 1, BalanceDetails 4
3 AttachedPayment 2, ScriptTransfer 3, Invocation 6, Asset 8, BlockInfo 6
5 Invocation 8
4 Asset 10, BlockInfo 7
7 BlockInfo 8
3-3 WriteSet 1, TransferSet 1, ScriptResult 2
4 Reissue 3, Burn 2, SponsorFee 2
5 Lease 3, LeaseCancel 1
"""
"""Versions, then names with the number of fields; a later line overrides an earlier one."""

_VALUES: Final = """
1 unit height CEILING DOWN FLOOR HALFEVEN HALFUP
1-4 UP HALFDOWN
2 Sell Buy
3 nil this lastBlock NOALG MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA3224 SHA3256 SHA3384 SHA3512
"""
"""Versions, then names of values."""
_SUBJECT: Final = "tx"
"""The value that only expressions have."""


@cache
def costs(version: int, kind: CodeKind) -> Mapping[int | str, int | None]:
    """Return the costs of functions; ``None`` for those that are known but not allowed."""
    table: dict[int | str, int | None] = {}
    for rest in catalogue.lines_of_version(_CONSTRUCTORS, version):
        for entry in rest.split(", "):
            name, fields = entry.split()
            table[name] = int(fields)
    for function in catalogue.functions(version):
        if _is_known(function.where, kind):
            table[function.key] = function.costs[version]
    if kind is CodeKind.DAPP_VERIFIER and version >= _FIRST_WITH_CALLS:
        table.update(dict.fromkeys(catalogue.CALLS_OF_DAPPS))
    return table


@cache
def names(version: int, kind: CodeKind) -> frozenset[str]:
    """Return the names of the library's values."""
    found = {name for rest in catalogue.lines_of_version(_VALUES, version) for name in rest.split()}
    if kind in (CodeKind.EXPRESSION, CodeKind.FREE_CALL, CodeKind.ANY):
        found.add(_SUBJECT)
    return frozenset(found)


def _is_known(where: str, kind: CodeKind) -> bool:
    if where == catalogue.IN_DAPPS:
        return kind is not CodeKind.EXPRESSION
    return where != catalogue.IN_ACCOUNTS or kind is not CodeKind.FREE_CALL
