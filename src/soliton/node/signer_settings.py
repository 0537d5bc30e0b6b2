"""The settings of the signing service: its address, node, keys, rules and callers.

What lives here: the section ``signer``. What does not: other sections (``settings``), and the
service (``soliton.signer``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.chain.networks.sections import Section
from soliton.node.rest_settings import (
    KEY_NAME,
    MAX_NAMED_KEYS,
    MAX_PORT,
    bind_address,
    key_hash,
    one_of,
)

SIGNER_PORT: Final = 6888
SIGNER_SCOPES: Final = ("approve", "list", "operate", "sign", "unlock")
"""The scopes of callers, described in ``docs/reference/signer.md``."""
MAX_RATE: Final = 1_000_000
MAX_HOSTS: Final = 64

_PLACES: Final = {
    "pkcs11": ("module", "token", "pin-file"),
    "vault": ("url", "mount", "token-file"),
}
"""For each kind of store: the keys of its address, of the container, and of the secret's file."""
MAX_UID: Final = 2**32 - 2
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")
_FETCHED: Final = ("environment", "command", "vault-kv")
_SECRETS: Final = ("phrase", "account-seed", "private-key")
_POLICY_HASH: Final = re.compile(r"[0-9a-f]{64}")
_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]")


class SignerCaller(msgspec.Struct, frozen=True):
    """An item of ``signer.callers``: the hash of its API key (empty for none), its scopes, its
    limit of requests a second (0: no limit), its user on this machine (-1 for none), and the
    SHA-256 of its certificate in hexadecimal (empty for none).
    """

    name: str
    key_hash: bytes
    may: frozenset[str]
    rate: int
    uid: int = -1
    certificate: str = ""


class SignerTls(msgspec.Struct, frozen=True):
    """``signer.tls``: the service's certificate and key, and the client certificates, or their
    issuers, that are accepted (``None``: clients need none).
    """

    certificate_file: Path
    key_file: Path
    clients_file: Path | None


class SignerStore(msgspec.Struct, frozen=True):
    """An item of ``signer.stores``: a key in a PKCS#11 token or Vault's transit engine."""

    name: str
    kind: str
    where: str
    within: str
    key: str
    secret_file: Path


class SignerWebhook(NamedTuple):
    """``signer.webhook``: the URL for notifications, and the file of the shared secret."""

    url: str
    secret_file: Path


class SignerFetched(msgspec.Struct, frozen=True):
    """An item of ``signer.stores`` whose secret is fetched from the environment, a command or
    Vault's KV engine, with the kind of secret and its public key.
    """

    name: str
    kind: str
    secret: str
    public_key: str
    where: str = ""
    command: tuple[str, ...] = ()
    within: str = ""
    path: str = ""
    field: str = ""
    token_file: str = ""


class SignerKeys(msgspec.Struct, frozen=True):
    """The settings of a signer with stored keys."""

    directory: Path
    policy_file: Path
    policy_hash: str
    state_directory: Path
    callers: tuple[SignerCaller, ...]
    hosts: tuple[str, ...]
    sync: bool
    stores: tuple[SignerStore, ...] = ()
    webhook: SignerWebhook | None = None
    origins: tuple[str, ...] = ()
    fetched: tuple[SignerFetched, ...] = ()


class Signer(msgspec.Struct, frozen=True):
    """``soliton.signer``: the address of the signing service, its node, and its stored keys."""

    bind_address: str
    port: int
    node_url: str
    keys: SignerKeys | None = None
    unix_socket: Path | None = None
    tls: SignerTls | None = None


def read_signer(section: Section, own_node: str, directory: Path, notes: list[str]) -> Signer:
    """Read the section ``signer``; notes for the operator are added to ``notes``."""
    node_url = section.text("node-url", own_node)
    if not node_url.startswith(("http://", "https://")):
        section.refuse("node-url", "an address that begins with http:// or https://")
    return Signer(
        bind_address=bind_address(section),
        port=section.integer("port", SIGNER_PORT, 0, MAX_PORT),
        node_url=node_url.rstrip("/"),
        keys=_keys(section, directory, notes),
        unix_socket=_file(section, "unix-socket"),
        tls=_tls(section.section("tls")),
    )


def _tls(section: Section) -> SignerTls | None:
    certificate, key = _file(section, "certificate-file"), _file(section, "key-file")
    clients = _file(section, "clients-file")
    if certificate is None and key is None and clients is None:
        return None
    if certificate is None or key is None:
        section.refuse("certificate-file", "a file in PEM, and one for key-file")
    return SignerTls(certificate, key, clients)


def _file(section: Section, key: str) -> Path | None:
    text = section.text(key, "")
    return Path(text).expanduser() if text else None


def _keys(section: Section, directory: Path, notes: list[str]) -> SignerKeys | None:
    keys, policy = section.text("keys-directory", ""), section.text("policy-file", "")
    state, policy_hash = section.text("state-directory", ""), section.text("policy-hash", "")
    callers, hosts = _callers(section), section.text_items("hosts")
    sync = section.boolean("audit-sync", True)
    (stores, fetched), webhook = _stores(section), _webhook(section)
    origins = section.text_items("origins")
    if len(origins) > MAX_HOSTS:
        section.refuse("origins", f"a list of up to {MAX_HOSTS} origins such as https://a.example")
    for number, text in origins:
        if _ORIGIN.fullmatch(text) is None:
            section.refuse_item("origins", number, "an origin such as https://a.example")
    if policy_hash and _POLICY_HASH.fullmatch(policy_hash) is None:
        section.refuse("policy-hash", "SHA-256 of the policy file: 64 digits 0-9a-f")
    if len(hosts) > MAX_HOSTS:
        section.refuse("hosts", f"a list of up to {MAX_HOSTS} names of this host")
    for number, text in hosts:
        if _HOST.fullmatch(text) is None:
            section.refuse_item("hosts", number, "a name of this host")
    if not keys and section.is_sound("keys-directory"):
        if policy or callers:
            notes.append(f"{section.full('keys-directory')} is not set: the signer keeps no keys")
        return None
    if not policy and section.is_sound("policy-file"):
        section.refuse("policy-file", "the file of rules, without which nothing is signed")
    return SignerKeys(
        directory=Path(keys).expanduser(),
        policy_file=Path(policy).expanduser(),
        policy_hash=policy_hash,
        state_directory=Path(state).expanduser() if state else directory / "signer",
        callers=callers,
        hosts=tuple(text for _, text in hosts),
        sync=sync,
        stores=stores,
        webhook=webhook,
        origins=tuple(text for _, text in origins),
        fetched=fetched,
    )


def _webhook(section: Section) -> SignerWebhook | None:
    inner = section.section("webhook")
    url, secret = inner.text("url", ""), inner.text("secret-file", "")
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        inner.refuse("url", "an address that begins with http:// or https://")
    if not secret:
        inner.refuse("secret-file", "the file of a secret that signs what is told")
    return SignerWebhook(url, Path(secret).expanduser())


def _stores(section: Section) -> tuple[tuple[SignerStore, ...], tuple[SignerFetched, ...]]:
    found: list[SignerStore] = []
    fetched: list[SignerFetched] = []
    names: set[str] = set()
    for item in section.sections("stores"):
        name = item.text("name", None)
        if (not KEY_NAME.fullmatch(name) or name in names) and item.is_sound("name"):
            item.refuse("name", "a name of its own, of letters, digits and ._-")
        names.add(name)
        kind = item.text("kind", None)
        if kind in _FETCHED:
            fetched.append(_one_fetched(item, name, kind))
            continue
        if kind not in _PLACES:
            item.refuse("kind", f"one of {', '.join((*_PLACES, *_FETCHED))}")
        where, within, secret = _PLACES[kind]
        place, inner, key = (item.text(each, None) for each in (where, within, "key"))
        if kind == "vault" and not place.startswith(("http://", "https://")):
            item.refuse(where, "an address that begins with http:// or https://")
        if kind == "vault":
            for each, text in ((within, inner), ("key", key)):
                if not KEY_NAME.fullmatch(text):
                    item.refuse(each, "letters, digits and ._-")
        file = Path(item.text(secret, None)).expanduser()
        found.append(SignerStore(name, kind, place, inner, key, file))
    if len(found) + len(fetched) > MAX_NAMED_KEYS:
        section.refuse("stores", f"at most {MAX_NAMED_KEYS} keys", show=False)
    return tuple(found), tuple(fetched)


def _one_fetched(item: Section, name: str, kind: str) -> SignerFetched:
    secret = item.text("secret", "phrase")
    if secret not in _SECRETS:
        item.refuse("secret", f"one of {', '.join(_SECRETS)}")
    made = SignerFetched(name, kind, secret, item.text("public-key", None))
    if kind == "environment":
        return msgspec.structs.replace(made, where=item.text("variable", None))
    if kind == "command":
        command = item.texts("command")
        if not command:
            item.refuse("command", 'a list such as ["pass", "show", "waves/hot"]')
        return msgspec.structs.replace(made, command=command)
    url, mount, path = item.text("url", None), item.text("mount", None), item.text("path", None)
    if not url.startswith(("http://", "https://")):
        item.refuse("url", "an address that begins with http:// or https://")
    for key, text in (("mount", mount), ("path", path)):
        names = text.split("/")
        if ".." in names or not all(map(KEY_NAME.fullmatch, names)):
            item.refuse(key, "letters, digits and ._-, with / between names")
    return msgspec.structs.replace(
        made,
        where=url,
        within=mount,
        path=path,
        field=item.text("field", "phrase"),
        token_file=str(Path(item.text("token-file", None)).expanduser()),
    )


def _callers(section: Section) -> tuple[SignerCaller, ...]:
    found: list[SignerCaller] = []
    for item in section.sections("callers"):
        name = item.text("name", None)
        taken = not KEY_NAME.fullmatch(name) or any(name == each.name for each in found)
        if taken and item.is_sound("name"):
            item.refuse("name", "a name of its own, of letters, digits and ._-")
        uid = item.integer("uid", -1, -1, MAX_UID)
        certificate = item.text("certificate", "").lower().replace(":", "")
        is_peer = uid >= 0 or bool(certificate)
        hashed = b"" if is_peer and not item.has("key-hash") else _hashed(item, found)
        if certificate and _FINGERPRINT.fullmatch(certificate) is None:
            item.refuse("certificate", "SHA-256 of a certificate: 64 digits 0-9a-f")
        if any(uid == each.uid >= 0 for each in found):
            item.refuse("uid", "a user that no other caller is")
        if any(certificate == each.certificate != "" for each in found):
            item.refuse("certificate", "a certificate that no other caller has")
        may = one_of(item, "may", SIGNER_SCOPES)
        rate = item.integer("rate", 0, 0, MAX_RATE)
        found.append(SignerCaller(name, hashed, frozenset(may), rate, uid, certificate))
    if len(found) > MAX_NAMED_KEYS:
        section.refuse("callers", f"at most {MAX_NAMED_KEYS} callers", show=False)
    return tuple(found)


def _hashed(item: Section, others: list[SignerCaller]) -> bytes:
    hashed = key_hash(item.text("key-hash", None))
    if not item.is_sound("key-hash"):
        return b""
    if hashed is None or any(hashed == each.key_hash for each in others):
        item.refuse("key-hash", "the hash of a key of its own, as soliton api-key new prints it")
    return hashed
