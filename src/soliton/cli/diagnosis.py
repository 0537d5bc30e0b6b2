"""Diagnoses of a machine: settings, clock, disk, limits, ports, files with keys.

Each finding has a line that says what to do. Nothing is changed, except for a small file that
measures the disk and is removed.

What lives here: the findings, and checks without other machines, except for a time server. What
does not: checks of nodes (``diagnosis_of_nodes``), options and output (``doctor``).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import resource
import shutil
import socket
import stat
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from soliton import __version__
from soliton.cli.process import OPEN_FILES
from soliton.crypto.public_secrets import is_public_api_key
from soliton.node.network_time import (
    MAX_CORRECTION_MS,
    SAMPLES,
    WORTH_A_WARNING_MS,
    NoTime,
    ask_server,
)
from soliton.node.settings import Settings
from soliton.node.versions import interface_version
from soliton.storage.engine import used_bytes
from soliton.web.ports import holder

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
FAULT: Final = "fault"

_GIB: Final = 1024**3
_MIB: Final = 1024**2
LEAST_FREE_BYTES: Final = _GIB
"""With less, a node of a public network is full within hours."""
LITTLE_FREE_BYTES: Final = 10 * _GIB
SLOW_SYNC_MS: Final = 20.0
"""A block is durable after a few syncs of the disk; an SSD takes 1 ms for one."""
SYNCS: Final = 20
SYNC_BYTES: Final = 16 * 1024
WRITE_BYTES: Final = 16 * _MIB
SLOW_WRITE_MIB: Final = 50
MEASURE_SECONDS: Final = 2.0
LEAST_FILES: Final = 1_024
MAX_KEY_FILES: Final = 1_000
LEAST_KEY_CHARS: Final = 20
"""An API key of random letters and digits with so many has 100 bits."""
_TIMEX_BYTES: Final = 512
_STATUS_OFFSET: Final = 40
_UNSYNCHRONIZED: Final = 0x40
_POINTER_BYTES: Final = 8


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check has found: ``state`` is ``ok``, ``note``, ``warning`` or ``fault``; ``advice``
    says what to do.
    """

    check: str
    state: str
    text: str
    advice: str = ""


def versions(settings: Settings) -> Iterator[Finding]:
    """Describe the program."""
    python = platform.python_version()
    text = f"soliton {__version__}, interface {interface_version(settings.network.family)}"
    yield Finding("version", OK, f"{text}, Python {python} on {platform.system()}")


# --- clock ----------------------------------------------------------------------------------------


def clock(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    """Check the machine's clock."""
    synchronized = is_clock_synchronized()
    if synchronized is False:
        yield Finding(
            "clock", WARNING, "the system does not keep its time",
            "enable a time service: timedatectl set-ntp true, or chrony",
        )  # fmt: skip
    elif synchronized:
        yield Finding("clock", OK, "the system keeps its time")
    server = settings.ntp_server
    if offline:
        return
    if not server:
        yield Finding("time server", NOTE, "none is set", "set ntp-server to compare the clock")
        return
    try:
        offset = asyncio.run(_offset_ms(server))
    except (OSError, TimeoutError, NoTime) as error:
        yield Finding(
            "time server", WARNING, f"{server}: {str(error) or 'no answer'}",
            "allow UDP to port 123, or set ntp-server to a server that can be reached",
        )  # fmt: skip
        return
    text = f"the clock differs by {offset} ms from {server}"
    if abs(offset) > MAX_CORRECTION_MS:
        yield Finding("time server", FAULT, text, "set the clock: a node does not correct so much")
    elif abs(offset) > WORTH_A_WARNING_MS:
        yield Finding("time server", WARNING, text, "let the system keep its time")
    else:
        yield Finding("time server", OK, text)


def is_clock_synchronized() -> bool | None:
    """Whether the kernel counts its clock as synchronized, ``None`` where that is not known. The
    call reads ``struct timex`` of ``<sys/timex.h>``, and sets nothing.
    """
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != _POINTER_BYTES:
        return None
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(timex) < 0:
            return None
    except (AttributeError, OSError):
        return None
    status = int.from_bytes(timex.raw[_STATUS_OFFSET : _STATUS_OFFSET + 4], sys.byteorder)
    return not status & _UNSYNCHRONIZED


async def _offset_ms(server: str) -> int:
    answers = [await ask_server(server) for _ in range(SAMPLES)]
    return round(min(answers, key=lambda each: each.delay).difference * 1_000)


# --- disk -----------------------------------------------------------------------------------------


def disk(settings: Settings) -> Iterator[Finding]:
    """Check room and speed of the disk with the chain."""
    directory = settings.data_directory
    place = existing_parent(directory)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        yield Finding("disk", FAULT, f"{place}: {error.strerror}", "choose another --data-dir")
        return
    stored = used_bytes(directory)
    text = f"{free / _GIB:.1f} GiB free, the chain has {stored / _GIB:.1f} GiB"
    if free < LEAST_FREE_BYTES:
        yield Finding("disk", FAULT, text, f"make room on the disk of {place}")
    elif free < LITTLE_FREE_BYTES:
        yield Finding("disk", WARNING, text, f"plan for more room on the disk of {place}")
    else:
        yield Finding("disk", OK, text)
    try:
        sync_ms, speed = _measure(place)
    except OSError as error:
        yield Finding(
            "disk speed", FAULT, f"{place} cannot be written: {error.strerror}",
            f"let this user write to {place}, or choose another --data-dir",
        )  # fmt: skip
        return
    text = f"{sync_ms:.1f} ms for a durable write, {speed:.0f} MiB/s"
    if sync_ms > SLOW_SYNC_MS or speed < SLOW_WRITE_MIB:
        yield Finding("disk speed", WARNING, text, "use an SSD on this machine, not a share")
    else:
        yield Finding("disk speed", OK, text)


def existing_parent(directory: Path) -> Path:
    """Return a directory, or the first one above it that exists."""
    return next(each for each in (directory, *directory.absolute().parents) if each.exists())


def _measure(directory: Path) -> tuple[float, float]:
    """The milliseconds of a durable write, and MiB a second; raises ``OSError``."""
    times = []
    ends = time.monotonic() + MEASURE_SECONDS
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".soliton-doctor-") as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(SYNC_BYTES))
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
            if time.monotonic() > ends:
                break
        started = time.perf_counter()
        file.write(os.urandom(WRITE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        seconds = time.perf_counter() - started
    return statistics.median(times) * 1_000, WRITE_BYTES / _MIB / seconds


# --- limits, ports --------------------------------------------------------------------------------


def files() -> Iterator[Finding]:
    """Check the limit on open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES:
        yield Finding("open files", OK, "no limit below what a node uses")
        return
    state = WARNING if hard >= LEAST_FILES else FAULT
    advice = f"raise it to {OPEN_FILES}: LimitNOFILE={OPEN_FILES} in a systemd unit, or ulimit -n"
    yield Finding("open files", state, f"the limit is {hard}", advice)


def ports(listeners: Iterator[tuple[str, str, int]], *, runs: bool) -> Iterator[Finding]:
    """Check the ports that a node listens on; one that ``runs`` has them already."""
    for key, host, port in listeners:
        if not port:
            continue
        problem = _taken(host, port)
        other = holder(port) if problem else None
        name = f"port {port}"
        if problem is None:
            state = WARNING if runs else OK
            text = f"free for {key}" + (", though a node answers" if runs else "")
            yield Finding(name, state, text, "check host and port of the section" if runs else "")
        elif runs:
            yield Finding(name, OK, f"{key} listens" + (f": {other}" if other else ""))
        else:
            who = f" by {other}" if other else ""
            yield Finding(
                name, FAULT, f"{key}: {problem}{who}", f"end that program, or set {key}.port"
            )


def _taken(host: str, port: int) -> str | None:
    """Why nothing can listen at an address, ``None`` if something can."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
            tried.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return None


# --- secrets --------------------------------------------------------------------------------------


def secret_files(settings: Settings, config: Path | None) -> Iterator[Finding]:
    """Check who can read files with keys."""
    checked = count = 0
    for path in _secret_files(settings, config):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            continue
        checked += 1
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            count += 1
            yield Finding("key files", FAULT, f"{path} is open to others", f"chmod 600 {path}")
    if not count:
        yield Finding("key files", OK, f"{checked} checked, none is open to others")


def _secret_files(settings: Settings, config: Path | None) -> Iterator[Path]:
    wallet, keys, tls = settings.wallet, settings.signer.keys, settings.signer.tls
    if config is not None and (wallet.password or wallet.seed or settings.miner.accounts):
        yield config
    yield from filter(
        None, (wallet.file, wallet.signer_key_file, wallet.signer_certificate_key_file)
    )
    if tls is not None:
        yield tls.key_file
    if keys is not None:
        yield from (each.secret_file for each in keys.stores)
        if keys.webhook is not None:
            yield keys.webhook.secret_file
        if keys.directory.is_dir():
            names = zip(range(MAX_KEY_FILES), keys.directory.iterdir(), strict=False)
            yield from (path for _, path in names)


def api_key(settings: Settings, given: str | None) -> Iterator[Finding]:
    """Check the API keys."""
    rest = settings.rest_api
    if not rest.enable:
        return
    keys = {"api-key-hash": rest.api_key_hash, **{k.name: k.key_hash for k in rest.named_keys}}
    known = {name: value for name, value in keys.items() if value}
    here = _is_local(rest.bind_address)
    public = [name for name, value in known.items() if is_public_api_key(value)]
    if public:
        yield Finding(
            "API key", WARNING if here else FAULT, f"{', '.join(public)}: everybody knows this key",
            "soliton api-key makes a new one and its hash",
        )  # fmt: skip
    elif not known:
        yield Finding("API key", NOTE, "none is set: routes that need one refuse everybody")
    else:
        yield Finding("API key", OK, f"{len(known)} set, none is published")
    if given is not None:
        if known and not rest.check_api_key(given) and not rest.scopes_of(given):
            yield Finding(
                "API key", WARNING, "the key of --api-key is none of the settings'",
                "check which node it belongs to",
            )  # fmt: skip
        if len(given) < LEAST_KEY_CHARS:
            yield Finding(
                "API key", WARNING if here else FAULT, f"the key has {len(given)} characters",
                f"take at least {LEAST_KEY_CHARS} random ones: soliton api-key",
            )  # fmt: skip


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
