"""A key in a PKCS#11 token: a hardware module, or SoftHSM.

What lives here: the dozen functions of the standard's C interface that signing needs, called in the
module that the operator names. What does not: conversion of signatures (``stores``).

Source: OASIS PKCS #11 Specification v3.1 and its header files; ``CKM_EDDSA`` without
parameters is plain Ed25519.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from soliton.signer.stores import StoreTrouble
from soliton.storage.files import OpenToOthers, read_secret

MAX_SLOTS: Final = 1_024
MAX_PIN_BYTES: Final = 256
_CKF_SERIAL_SESSION: Final = 0x4
_CKU_USER: Final = 1
_CKO_PUBLIC_KEY, _CKO_PRIVATE_KEY = 2, 3
_CKA_CLASS, _CKA_LABEL, _CKA_KEY_TYPE, _CKA_EC_POINT = 0x0, 0x3, 0x100, 0x181
_CKK_EC_EDWARDS: Final = 0x40
_CKM_EDDSA: Final = 0x1057
_CKR_OK: Final = 0
_CKR_ALREADY_LOGGED_IN: Final = 0x100
_CKR_ALREADY_INITIALIZED: Final = 0x191
_LOST: Final = frozenset(
    (
        *(0x30, 0x31, 0x32),  # CKR_DEVICE_ERROR, CKR_DEVICE_MEMORY, CKR_DEVICE_REMOVED
        *(0x60, 0x82),  # CKR_KEY_HANDLE_INVALID, CKR_OBJECT_HANDLE_INVALID
        *(0xB0, 0xB3),  # CKR_SESSION_CLOSED, CKR_SESSION_HANDLE_INVALID
        *(0xE0, 0xE1, 0x3),  # CKR_TOKEN_NOT_PRESENT, _NOT_RECOGNIZED, CKR_SLOT_ID_INVALID
        *(0x101, 0x190),  # CKR_USER_NOT_LOGGED_IN, CKR_CRYPTOKI_NOT_INITIALIZED
    )
)
"""Answers after which a new session may work."""
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_OCTET_STRING: Final = b"\x04\x20"
_Ulong: Final = ctypes.c_ulong


class _Attribute(ctypes.Structure):
    _fields_ = (("type", _Ulong), ("value", ctypes.c_void_p), ("length", _Ulong))


class _Mechanism(ctypes.Structure):
    _fields_ = (("mechanism", _Ulong), ("parameter", ctypes.c_void_p), ("length", _Ulong))


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_ubyte), ("minor", ctypes.c_ubyte))


class _TokenInfo(ctypes.Structure):
    _fields_ = (
        ("label", ctypes.c_char * 32),
        ("manufacturer", ctypes.c_char * 32),
        ("model", ctypes.c_char * 16),
        ("serial", ctypes.c_char * 16),
        ("flags", _Ulong),
        ("counts", _Ulong * 10),
        ("hardware", _Version),
        ("firmware", _Version),
        ("time", ctypes.c_char * 16),
    )


class _TokenLost(StoreTrouble):
    """The session is gone: the token was taken out, or has restarted."""


class Pkcs11:
    """An Ed25519 key of a token, by their labels."""

    def __init__(self, module: Path, token: str, key: str, pin_file: Path) -> None:
        """Open a session and log in; raises ``StoreTrouble``."""
        self._lock = threading.Lock()
        self._token, self._key, self._pin_file = token, key, pin_file
        try:
            self._module: Any = ctypes.CDLL(str(module))
        except OSError as error:
            raise StoreTrouble(f"{module} cannot be loaded: {error}") from None
        self._session = _Ulong()
        self._private = _Ulong()
        self._is_open = False
        self._open()

    def _open(self) -> None:
        """Find the token, open a session, log in, and find the key."""
        self._call("C_Initialize", None, fine=(_CKR_OK, _CKR_ALREADY_INITIALIZED))
        slot = self._slot_of(self._token)
        flags = _Ulong(_CKF_SERIAL_SESSION)
        self._call("C_OpenSession", slot, flags, None, None, ctypes.byref(self._session))
        try:
            pin = read_secret(self._pin_file, MAX_PIN_BYTES).rstrip(b"\r\n")
        except OpenToOthers as error:
            raise StoreTrouble(str(error)) from None
        except OSError as error:
            raise StoreTrouble(f"{self._pin_file} cannot be read: {error.strerror}") from None
        fine = (_CKR_OK, _CKR_ALREADY_LOGGED_IN)
        length = _Ulong(len(pin))
        self._call("C_Login", self._session, _Ulong(_CKU_USER), pin, length, fine=fine)
        self._private = self._object(_CKO_PRIVATE_KEY)
        self._is_open = True

    def public_key(self) -> bytes:
        """Return the point of the public key."""
        handle = self._object(_CKO_PUBLIC_KEY)
        room = ctypes.create_string_buffer(128)
        value = ctypes.cast(room, ctypes.c_void_p)
        attribute = _Attribute(_CKA_EC_POINT, value, len(room))
        one = _Ulong(1)
        self._call("C_GetAttributeValue", self._session, handle, ctypes.byref(attribute), one)
        point = room.raw[: attribute.length]
        # The standard wraps it in an octet string; some modules return it bare.
        if len(point) == _KEY_BYTES + 2 and point.startswith(_OCTET_STRING):
            point = point[2:]
        if len(point) != _KEY_BYTES:
            raise StoreTrouble(f"the key {self._key} is no Ed25519 key")
        return point

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Sign one after the other: a session allows one operation at a time. A token that was
        taken out, or has restarted, and is back is opened again.
        """
        with self._lock:
            return [self._sign_after_loss(each) for each in messages]

    def _sign_after_loss(self, message: bytes) -> bytes:
        if self._is_open:
            try:
                return self._sign(message)
            except _TokenLost:
                self._is_open = False
        self._module.C_CloseSession(self._session)
        self._open()
        return self._sign(message)

    def _sign(self, message: bytes) -> bytes:
        mechanism = _Mechanism(_CKM_EDDSA, None, 0)
        self._call("C_SignInit", self._session, ctypes.byref(mechanism), self._private)
        room, length = ctypes.create_string_buffer(_SIGNATURE_BYTES), _Ulong(_SIGNATURE_BYTES)
        size = _Ulong(len(message))
        self._call("C_Sign", self._session, message, size, room, ctypes.byref(length))
        return room.raw[: length.value]

    def close(self) -> None:
        """End the session."""
        self._module.C_CloseSession(self._session)

    def _slot_of(self, token: str) -> ctypes.c_ulong:
        count = _Ulong(MAX_SLOTS)
        slots = (_Ulong * MAX_SLOTS)()
        self._call("C_GetSlotList", ctypes.c_ubyte(1), slots, ctypes.byref(count))
        for slot in slots[: count.value]:
            info = _TokenInfo()
            self._call("C_GetTokenInfo", _Ulong(slot), ctypes.byref(info))
            if bytes(info.label).decode("utf-8", "replace").rstrip() == token:
                return _Ulong(slot)
        raise StoreTrouble(f"there is no token with the label {token}")

    def _object(self, kind: int) -> ctypes.c_ulong:
        label = self._key.encode()
        values = (
            (_CKA_CLASS, _Ulong(kind)),
            (_CKA_KEY_TYPE, _Ulong(_CKK_EC_EDWARDS)),
            (_CKA_LABEL, ctypes.create_string_buffer(label, len(label))),
        )
        template = (_Attribute * len(values))(
            *(
                _Attribute(name, ctypes.cast(ctypes.pointer(value), ctypes.c_void_p), size)
                for (name, value), size in zip(
                    values, (ctypes.sizeof(value) for _, value in values), strict=True
                )
            )
        )
        self._call("C_FindObjectsInit", self._session, template, _Ulong(len(values)))
        found, count = (_Ulong * 2)(), _Ulong()
        try:
            two = _Ulong(2)
            self._call("C_FindObjects", self._session, found, two, ctypes.byref(count))
        finally:
            self._call("C_FindObjectsFinal", self._session)
        if count.value != 1:
            raise StoreTrouble(
                f"{count.value} Ed25519 keys of the token have the label {self._key}"
            )
        return _Ulong(found[0])

    def _call(self, name: str, *arguments: Any, fine: tuple[int, ...] = (_CKR_OK,)) -> None:  # noqa: ANN401
        function = getattr(self._module, name, None)
        if function is None:
            raise StoreTrouble(f"the module has no {name}")
        function.restype = _Ulong
        result = function(*arguments)
        if result in _LOST and self._is_open:
            raise _TokenLost(f"the token answers {name} with {result:#x}")
        if result not in fine:
            raise StoreTrouble(f"the token answers {name} with {result:#x}")
