"""Accounts of Ethereum wallets, and the transactions of type 18 that they sign.

What lives here: ``EthereumAccount``. What does not: the layout of these transactions
(``soliton.chain.transactions.ethereum``), and sending them (``sending``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from soliton.chain.addresses import (
    PUBLIC_KEY_HASH_LENGTH,
    Address,
    address_text,
    check_address,
    from_public_key,
    from_public_key_hash,
    public_key_hash,
)
from soliton.chain.errors import FormatError
from soliton.chain.ethereum_encoding import (
    PAYMENTS_TYPE,
    AbiValue,
    selector,
    write_arguments,
    write_word,
)
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.model import AnyTransaction
from soliton.client.amounts import Amount, AssetLike, asset_bytes, units
from soliton.client.fees import least_fee
from soliton.client.making import Value, Whom, argument
from soliton.client.transaction import Transaction, chain_number, clock
from soliton.crypto import base58, secp256k1
from soliton.crypto.errors import Base58Error, CryptoError
from soliton.crypto.hashes import keccak256
from soliton.crypto.secp256k1 import PRIVATE_KEY_LENGTH

_INVOKE: Final = 16
_TRANSFER: Final = 4
_NATIVE: Final = bytes(32)
_PREFIX: Final = "0x"


class EthereumAccount:
    """An account with an Ethereum key: it makes transfers and calls of dApps (type 18).

    It also has an ordinary address on its chain and receives like any account. Its private key is
    never shown.

    >>> alice = EthereumAccount("0x" + "01" * 32, "R")
    >>> alice.ethereum_address
    '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'
    """

    __slots__ = ("_chain_id", "_key", "_public_key")

    def __init__(self, private_key: str | bytes, chain_id: int | str) -> None:
        """``private_key`` is 32 bytes, or their hexadecimal digits. Raises ``InputError``."""
        try:
            key = _from_hexadecimal(private_key) if isinstance(private_key, str) else private_key
            if len(key) != PRIVATE_KEY_LENGTH:
                raise ValueError
            self._public_key = secp256k1.public_key(key)
        except (ValueError, CryptoError):
            # Without the cause, which may quote the key.
            raise FormatError("not a private key of 32 bytes in hexadecimal") from None
        self._key = key
        self._chain_id = chain_number(chain_id)

    @property
    def chain_id(self) -> int:
        """The chain id of its chain."""
        return self._chain_id

    @property
    def address(self) -> str:
        """Its address on its chain, in base58."""
        return address_text(self.address_bytes)

    @property
    def address_bytes(self) -> Address:
        """Its address in bytes."""
        return from_public_key(self._public_key, self._chain_id)

    @property
    def ethereum_address(self) -> str:
        """Its address in Ethereum's form, with the checksum in the case of the letters (EIP-55)."""
        digits = public_key_hash(self.address_bytes).hex()
        marks = keccak256(digits.encode()).hex()
        cased = (d.upper() if mark >= "8" else d for d, mark in zip(digits, marks, strict=False))
        return _PREFIX + "".join(cased)

    @property
    def public_key(self) -> str:
        """Its public key of 64 bytes, in base58."""
        return base58.encode(self._public_key)

    def transfer(
        self,
        recipient: Whom,
        amount: Amount,
        asset: AssetLike = None,
        *,
        fee: Amount | None = None,
        timestamp: int | None = None,
    ) -> Transaction:
        """Make a transfer of the coin, or of an asset. The recipient is an address of the chain, or
        of Ethereum (``0x…``).
        """
        to, number = self._hash_of(recipient), units(amount, asset)
        if number < 0:
            raise FormatError(f"a negative amount: {amount}")
        name = asset_bytes(asset)
        price = self._fee(_TRANSFER, fee)
        if name is None:
            value = number * ethereum.WEI_PER_WAVELET
            return self._made(to, value, b"", price, timestamp)
        data = ethereum.TRANSFER_SELECTOR + to.rjust(32, b"\0") + write_word(number)
        return self._made(name[:PUBLIC_KEY_HASH_LENGTH], 0, data, price, timestamp)

    def invoke(
        self,
        dapp: Whom,
        function: str | None = None,
        *arguments: Value,
        payments: Iterable[tuple[Amount, AssetLike]] = (),
        types: Sequence[str] | None = None,
        fee: Amount | None = None,
        timestamp: int | None = None,
    ) -> Transaction:
        """Make a call of a dApp's function, by default of its default function.

        Ethereum identifies a function by its argument types, which follow from the values except
        for empty lists: in that case give all ``types`` (``int64``, ``bool``, ``bytes``,
        ``string``, and lists of them: ``int64[]``).
        """
        values = tuple(map(argument, arguments))
        kinds = tuple(map(_type_of, values)) if types is None else tuple(types)
        if len(kinds) != len(values):
            raise FormatError(f"{len(kinds)} types of {len(values)} arguments")
        paid = tuple(
            (asset_bytes(asset) or _NATIVE, units(amount, asset)) for amount, asset in payments
        )
        data = selector(function or "default", kinds)
        data += write_arguments((*values, paid), (*kinds, PAYMENTS_TYPE))
        return self._made(self._hash_of(dapp), 0, data, self._fee(_INVOKE, fee), timestamp)

    def _fee(self, like: int, fee: Amount | None) -> tuple[int, bool]:
        """Return the fee, and whether the library chose it."""
        if fee is None:
            return least_fee(self._chain_id, like, 1, None), True
        return units(fee, None), False

    def _made(
        self, to: bytes, value: int, data: bytes, fee: tuple[int, bool], timestamp: int | None
    ) -> Transaction:
        stamp = clock.next() if timestamp is None else timestamp
        if min(stamp, fee[0]) < 0:
            raise FormatError(f"a negative time or fee: {min(stamp, fee[0])}")
        made = ethereum.sign(
            self._key,
            chain_id=self._chain_id,
            timestamp=stamp,
            fee=fee[0],
            to=to,
            value=value,
            data=data,
        )
        codec.validate(made)
        given = {"fee": fee[1], "timestamp": timestamp is None}
        chosen = frozenset(name for name, is_choice in given.items() if is_choice)
        return Transaction(made, renewer=self._renewed, chosen=chosen)

    def _renewed(self, before: AnyTransaction, fee: int, timestamp: int) -> AnyTransaction:
        """Sign the same transaction with another fee and timestamp."""
        payload = before.payload
        return ethereum.sign(
            self._key,
            chain_id=self._chain_id,
            timestamp=timestamp,
            fee=fee,
            to=payload.to,
            value=payload.value,
            data=payload.data,
        )

    def _hash_of(self, whom: Whom) -> bytes:
        """Return the 20 bytes of an account's Ethereum address."""
        text = whom if isinstance(whom, str) else whom.address
        if text.startswith(_PREFIX):
            try:
                data = _from_hexadecimal(text)
                if len(data) != PUBLIC_KEY_HASH_LENGTH:
                    raise ValueError
                return public_key_hash(from_public_key_hash(data, self._chain_id))
            except ValueError:
                raise FormatError(f"not an Ethereum address: {text[:80]!r}") from None
        try:
            return public_key_hash(check_address(base58.decode(text), self._chain_id))
        except Base58Error as error:
            problem = f"not an address: {text[:80]!r}; wallets do not support aliases"
            raise FormatError(problem) from error

    def __repr__(self) -> str:
        return f"<EthereumAccount {self.ethereum_address}>"

    def __str__(self) -> str:
        return self.address


def _from_hexadecimal(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix(_PREFIX))


def _type_of(value: AbiValue) -> str:
    """Return the ABI type of a value; raises ``FormatError`` if it is ambiguous."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case bytes():
            return "bytes"
        case str():
            return "string"
        case tuple():
            kinds = {_type_of(each) for each in value}
            if len(kinds) != 1:
                raise FormatError(
                    "the type of a list's items does not follow from them: give types"
                )
            return f"{kinds.pop()}[]"
