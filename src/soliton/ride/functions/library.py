"""The implementations of the numbered library functions.

What lives here: one table per area, and ``implementations``. What does not: names, types and costs
(``catalogue``), and the functions that are called by name (``bodies``).

The key of a row is a number, or a number and the first version of the row; a later version replaces
an earlier one. The catalogue decides which functions a version has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Final

from soliton.crypto import groth16
from soliton.ride.functions import (
    arithmetic,
    catalogue,
    chain_data,
    conversions,
    cryptography,
    data,
    decimals,
    encodings,
    recipients,
    text,
)
from soliton.ride.functions.calling import ANYTHING, Implementation, checked, in_context
from soliton.ride.values import (
    MAX_LIST_LENGTH,
    MAX_STRING_BYTES,
    BigInt,
    CaseObject,
    RideList,
    Value,
    ride_tuple,
)

Row = tuple[tuple[type, ...], Callable[..., Value]]
Table = dict[int | tuple[int, int], Row]

_TWO_INTS: Final = (int, int)
_TWO_BIG: Final = (BigInt, BigInt)
_ROUNDED: Final = (int, int, int, int, int, ANYTHING)
_ROUNDED_BIG: Final = (BigInt, int, BigInt, int, int, ANYTHING)
_NUMBERS: Final[Table] = {
    100: (_TWO_INTS, arithmetic.add),
    101: (_TWO_INTS, arithmetic.subtract),
    102: (_TWO_INTS, arithmetic.greater),
    103: (_TWO_INTS, arithmetic.greater_or_equal),
    104: (_TWO_INTS, arithmetic.multiply),
    105: (_TWO_INTS, arithmetic.divide),
    106: (_TWO_INTS, arithmetic.modulo),
    107: ((int, int, int), arithmetic.fraction_before_version_5),
    (107, 5): ((int, int, int), arithmetic.fraction),
    109: (_ROUNDED, decimals.logarithm),
    110: ((int, int, int, CaseObject), arithmetic.rounded_fraction),
    119: (_ROUNDED_BIG, decimals.logarithm_big),
    311: (_TWO_BIG, arithmetic.add_big),
    312: (_TWO_BIG, arithmetic.subtract_big),
    313: (_TWO_BIG, arithmetic.multiply_big),
    314: (_TWO_BIG, arithmetic.divide_big),
    315: (_TWO_BIG, arithmetic.modulo_big),
    316: ((BigInt, BigInt, BigInt), arithmetic.fraction_big),
    317: ((BigInt, BigInt, BigInt, CaseObject), arithmetic.rounded_fraction_big),
    318: ((BigInt,), arithmetic.negate_big),
    319: (_TWO_BIG, arithmetic.greater_big),
    320: (_TWO_BIG, arithmetic.greater_or_equal_big),
    405: ((RideList,), arithmetic.median),
    406: ((RideList,), arithmetic.largest),
    407: ((RideList,), arithmetic.smallest),
    408: ((RideList,), arithmetic.largest_big),
    409: ((RideList,), arithmetic.smallest_big),
    425: ((RideList,), arithmetic.median_big),
}
_NUMBERS_IN_CONTEXT: Final[Table] = {
    108: (_ROUNDED, decimals.power),
    118: (_ROUNDED_BIG, decimals.power_big),
    catalogue.POW_BIG_INT_TO_HALF: ((BigInt, int, int, ANYTHING), decimals.root_big),
}

_TEXT_AND_INT: Final = (str, int)
_TWO_TEXTS: Final = (str, str)
_TEXT: Final[Table] = {
    300: (_TWO_TEXTS, text.add),
    (303, 5): (_TEXT_AND_INT, text.take),
    (303, 6): (_TEXT_AND_INT, text.limited_take),
    (304, 5): (_TEXT_AND_INT, text.drop),
    (304, 6): (_TEXT_AND_INT, text.limited_drop),
    (305, 5): ((str,), text.size),
    306: (_TEXT_AND_INT, text.limited_take_right),
    307: (_TEXT_AND_INT, text.limited_drop_right),
    (1203, 5): (_TWO_TEXTS, text.index_of),
    (1204, 5): ((str, str, int), text.index_of_from),
    (1205, 5): (
        _TWO_TEXTS,
        partial(text.limited_split, "split", MAX_STRING_BYTES, MAX_LIST_LENGTH),
    ),
    (1205, 6): (_TWO_TEXTS, partial(text.limited_split, "split", 500, 20)),
    (1207, 5): (_TWO_TEXTS, text.last_index_of),
    (1208, 5): ((str, str, int), text.last_index_of_from),
    1209: (
        (RideList, str),
        partial(text.join, "makeString", MAX_LIST_LENGTH, MAX_STRING_BYTES, False),
    ),
    (1209, 6): ((RideList, str), partial(text.join, "makeString", 70, 500, True)),
    1210: ((RideList, str), partial(text.join, "makeString_2C", 100, 6000, True)),
    1211: (
        (RideList, str),
        partial(text.join, "makeString_11C", MAX_LIST_LENGTH, MAX_STRING_BYTES, True),
    ),
    1212: (_TWO_TEXTS, partial(text.limited_split, "split_4C", 6000, 100)),
    1213: (
        _TWO_TEXTS,
        partial(text.limited_split, "split_51C", MAX_STRING_BYTES, MAX_LIST_LENGTH),
    ),
    1214: ((str, str, str), text.replace_first),
    1215: ((str, str, str), text.replace_all),
}
_TEXT_IN_CONTEXT: Final[Table] = {
    # Until version 4, strings are measured in code units or code points, depending on the height.
    303: (_TEXT_AND_INT, text.take_before),
    304: (_TEXT_AND_INT, text.drop_before),
    305: ((str,), text.size_before),
    1203: (_TWO_TEXTS, text.index_of_before),
    1204: ((str, str, int), text.index_of_from_before),
    1205: (_TWO_TEXTS, text.split_before),
    1207: (_TWO_TEXTS, text.last_index_of_before),
    1208: ((str, str, int), text.last_index_of_from_before),
}

_BYTES_AND_INT: Final = (bytes, int)
_DATA: Final[Table] = {
    0: ((ANYTHING, ANYTHING), conversions.are_equal),
    3: ((ANYTHING,), conversions.get_type),
    200: ((bytes,), data.size_of_bytes),
    201: (_BYTES_AND_INT, data.take_bytes),
    (201, 6): (_BYTES_AND_INT, data.limited_take_bytes),
    202: (_BYTES_AND_INT, data.drop_bytes),
    (202, 6): (_BYTES_AND_INT, data.limited_drop_bytes),
    203: ((bytes, bytes), data.add_bytes),
    204: (_BYTES_AND_INT, data.limited_take_right_bytes),
    205: (_BYTES_AND_INT, data.limited_drop_right_bytes),
    310: ((int,), conversions.int_to_big_int),
    400: ((RideList,), data.size_of_list),
    401: ((RideList, int), data.element),
    410: ((int,), conversions.int_to_bytes),
    411: ((str,), conversions.text_to_bytes),
    412: ((bool,), conversions.boolean_to_bytes),
    413: ((BigInt,), conversions.big_int_to_bytes),
    414: ((bytes,), conversions.bytes_to_big_int),
    415: ((bytes, int, int), conversions.bytes_to_big_int_from),
    416: ((BigInt,), conversions.big_int_to_int),
    420: ((int,), conversions.int_to_text),
    421: ((bool,), conversions.boolean_to_text),
    422: ((BigInt,), conversions.big_int_to_text),
    423: ((str,), conversions.parse_big_int_value),
    424: ((str,), conversions.parse_big_int),
    600: ((bytes,), encodings.to_base58),
    601: ((str,), encodings.from_base58),
    602: ((bytes,), encodings.to_long_base64),
    (602, 4): ((bytes,), encodings.to_base64),
    603: ((str,), encodings.from_base64),
    604: ((bytes,), encodings.to_long_base16),
    (604, 4): ((bytes,), encodings.to_base16),
    605: ((str,), encodings.from_long_base16),
    (605, 4): ((str,), encodings.from_base16),
    606: ((bytes,), encodings.to_short_base64),
    607: ((str,), encodings.from_short_base64),
    608: ((bytes,), encodings.to_short_base16),
    609: ((str,), encodings.from_short_base16),
    1100: ((ANYTHING, RideList), data.prepend),
    (1100, 4): ((ANYTHING, RideList), data.limited_prepend),
    1101: ((RideList, ANYTHING), data.append),
    1102: ((RideList, RideList), data.concatenate),
    1103: ((RideList, ANYTHING), data.index_of_element),
    1104: ((RideList, ANYTHING), data.last_index_of_element),
    1105: ((RideList, int), data.remove),
    1106: ((RideList, int, ANYTHING), data.replace),
    1107: ((int, ANYTHING), data.fill),
    1200: ((bytes,), conversions.bytes_to_long_text),
    (1200, 4): ((bytes,), conversions.bytes_to_text),
    1201: ((bytes,), conversions.bytes_to_int),
    1202: (_BYTES_AND_INT, conversions.bytes_to_int_from),
    1206: ((str,), conversions.parse_int),
    1350: ((CaseObject,), data.size_of_tuple),
    **{1298 + size: ((ANYTHING,) * size, ride_tuple) for size in range(2, 23)},
}

_THREE_BYTES: Final = (bytes, bytes, bytes)
_DIGEST_AND_BYTES: Final = (CaseObject, bytes, bytes, bytes)
_V3_LIMIT: Final = cryptography.MAX_MESSAGE_KILOBYTES_V3
_CRYPTOGRAPHY: Final[Table] = {
    500: (_THREE_BYTES, cryptography.verify_signature),
    (500, 3): (_THREE_BYTES, partial(cryptography.limited_verify_signature, _V3_LIMIT)),
    (500, 4): (_THREE_BYTES, cryptography.verify_signature),
    501: ((bytes,), cryptography.HASHES["keccak256"]),
    502: ((bytes,), cryptography.HASHES["blake2b256"]),
    503: ((bytes,), cryptography.HASHES["sha256"]),
    504: (_DIGEST_AND_BYTES, partial(cryptography.limited_verify_rsa, _V3_LIMIT)),
    (504, 4): (_DIGEST_AND_BYTES, cryptography.verify_rsa),
    700: (_THREE_BYTES, cryptography.check_merkle_proof),
    701: ((RideList, bytes, int), cryptography.create_merkle_root),
    800: (
        _THREE_BYTES,
        partial(cryptography.verify_groth16, groth16.BLS12_381, cryptography.MAX_GROTH16_INPUTS),
    ),
    801: (
        _THREE_BYTES,
        partial(cryptography.verify_groth16, groth16.BN254, cryptography.MAX_GROTH16_INPUTS),
    ),
    902: ((RideList, RideList, int), cryptography.validate_certificate_chain),
    903: (_THREE_BYTES, cryptography.verify_p256),
    **{
        first + inputs - 1: (_THREE_BYTES, partial(cryptography.verify_groth16, curve, inputs))
        for first, curve in ((2400, groth16.BLS12_381), (2450, groth16.BN254))
        for inputs in range(1, 16)
    },
    **{
        2500 + index: (_THREE_BYTES, partial(cryptography.limited_verify_signature, limit))
        for index, limit in enumerate((8, 16, 32, 64, 128))
    },
    **{
        2600 + index: (_DIGEST_AND_BYTES, partial(cryptography.limited_verify_rsa, limit))
        for index, limit in enumerate((16, 32, 64, 128))
    },
    **{
        first + index: (
            (bytes,),
            partial(cryptography.limited_hash, cryptography.HASHES[name], limit),
        )
        for first, name in ((2700, "keccak256"), (2800, "blake2b256"), (2900, "sha256"))
        for index, limit in enumerate((16, 32, 64, 128))
    },
}

_CRYPTOGRAPHY_IN_CONTEXT: Final[Table] = {900: ((bytes, bytes), cryptography.recover_key)}

_DATA_TYPES: Final = (int, bool, bytes, str)
_DATA_NAMES: Final = ("getInteger", "getBoolean", "getBinary", "getString")
_LISTS_OF_ENTRIES: Final[Table] = {
    1040 + index: ((RideList, str), partial(chain_data.entry_of_list, kind))
    for index, kind in enumerate(_DATA_TYPES)
}
_RECIPIENT: Final = (CaseObject,)
_CHAIN: Final[Table] = {
    901: ((CaseObject, int), chain_data.calculate_delay),
    1000: ((bytes,), chain_data.transaction),
    1001: ((bytes,), chain_data.transaction_height),
    1003: ((CaseObject, ANYTHING), chain_data.balance_before),
    1004: ((bytes,), chain_data.asset_info),
    1005: ((int,), chain_data.block_info),
    1006: ((bytes,), chain_data.transfer),
    1007: (_RECIPIENT, chain_data.balance_details),
    1008: ((CaseObject, bytes), chain_data.balance),
    1009: (_RECIPIENT, chain_data.script_hash),
    1054: (_RECIPIENT, chain_data.is_data_untouched),
    1060: (_RECIPIENT, recipients.address_from_recipient),
    1062: ((str,), recipients.address_from_text),
    1063: ((bytes,), recipients.address_from_public_key),
    1070: ((bytes,), chain_data.transfer_from_protobuf),
    1080: (_RECIPIENT, chain_data.calculate_asset_id),
    1081: (_RECIPIENT, chain_data.calculate_lease_id),
    **{
        1050 + index: ((CaseObject, str), partial(chain_data.entry_of_account, kind))
        for index, kind in enumerate(_DATA_TYPES)
    },
}
_TEXT_OF_ADDRESS: Final[Table] = {1061: (_RECIPIENT, recipients.address_to_text)}

_UNCHECKED: Final[dict[int, Implementation]] = {
    # These check their arguments themselves.
    1: conversions.is_instance_of,
    2: conversions.throw,
    1020: partial(chain_data.invoke, False),
    1021: partial(chain_data.invoke, True),
    1090: chain_data.simple_issue,
    1091: chain_data.issue,
    1092: chain_data.simple_lease,
    1093: chain_data.lease,
    **{
        1055 + index: partial(chain_data.own_entry, kind, name)
        for index, (kind, name) in enumerate(zip(_DATA_TYPES, _DATA_NAMES, strict=True))
    },
}


_ROWS: Final = {
    (key, 1) if isinstance(key, int) else key: (bind, *row)
    for bind, tables in (
        (checked, (_NUMBERS, _TEXT, _DATA, _CRYPTOGRAPHY, _LISTS_OF_ENTRIES, _TEXT_OF_ADDRESS)),
        (in_context, (_NUMBERS_IN_CONTEXT, _TEXT_IN_CONTEXT, _CRYPTOGRAPHY_IN_CONTEXT, _CHAIN)),
    )
    for table in tables
    for key, row in table.items()
}
"""The rows of all tables by number and first version, with what binds them."""


@cache
def implementations(version: int) -> dict[int, Implementation]:
    """Return all numbered functions of a version. Shared; do not modify."""
    names = {
        function.key: function.name
        for function in catalogue.functions(version)
        if isinstance(function.key, int)
    }
    if "sqrtBigInt" in catalogue.costs(version):
        names[catalogue.POW_BIG_INT_TO_HALF] = "pow"
    since: dict[int, int] = {}
    for number, first in _ROWS:
        if number in names and since.get(number, 0) < first <= version:
            since[number] = first
    bound = {number: _bound(names[number], number, first) for number, first in since.items()}
    return bound | {key: body for key, body in _UNCHECKED.items() if key in names}


@cache
def _bound(name: str, number: int, first: int) -> Implementation:
    """Return the implementation of a row, the same for all versions that have it."""
    bind, kinds, body = _ROWS[number, first]
    return bind(name, kinds, body)
