"""Assembling a signer with stored keys, and closing it.

What lives here: the order in which its parts are opened, and what stops a start. What does not: the
parts.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from soliton.signer.boot_clock import BootClock, boot_ms
from soliton.signer.callers import Callers
from soliton.signer.fetched import fetch
from soliton.signer.generating import Generating
from soliton.signer.journal import Journal
from soliton.signer.key_routes import KeyRoutes
from soliton.signer.keyring import Keyring
from soliton.signer.node_client import NodeClient
from soliton.signer.origins import Origins
from soliton.signer.pipeline import SigningPipeline
from soliton.signer.pkcs11 import Pkcs11
from soliton.signer.policy_file import PolicyProblem, read_policy
from soliton.signer.records import Entry, Event
from soliton.signer.settings import KeySettings, SignerSettings, StoreSettings
from soliton.signer.state import SignerState
from soliton.signer.stores import StoredKey, VaultTransit
from soliton.signer.webhook import Webhook


def stored_key(settings: StoreSettings) -> StoredKey:
    """Return a key in its store; raises ``StoreTrouble``."""
    it = settings
    if it.kind == "pkcs11":
        return StoredKey(Pkcs11(Path(it.where), it.within, it.key, it.secret_file))
    return StoredKey(VaultTransit(it.where, it.within, it.key, it.secret_file))


class KeyService:
    """The routes, and the resources to close with them."""

    def __init__(
        self, settings: SignerSettings, keys: KeySettings, node: NodeClient, clock: BootClock | None
    ) -> None:
        """Open the rules, the keys and the audit log. Raises ``PolicyProblem``, ``KeyProblem``,
        ``AuditProblem``, ``EnvironmentProblem`` (``StoreTrouble`` among them).
        """
        chain_id = settings.network.chain_id
        read = partial(read_policy, keys.policy_file, chain_id)
        policy = read()
        if policy.hash != keys.policy_hash:
            raise PolicyProblem(
                f"{keys.policy_file} has the hash {policy.hash}, signer.policy-hash is "
                f"{keys.policy_hash or 'missing'}: look at the rules, then pin the hash"
            )
        self._stored = {each.name: stored_key(each) for each in keys.stores}
        fetched = {each.name: fetch(each) for each in keys.fetched}
        keyring = Keyring(keys.directory, chain_id, boot_ms, self._stored, fetched)
        self.journal = Journal(keys.state_directory, durable=keys.durable)
        try:
            state = SignerState(clock or BootClock())
            self.journal.load(state.replay)
            state.resume()
            # The clock of windows continues from this line.
            start = Entry(
                *(0, "", settings.clock(), state.clock.now(), Event.START),
                boot=state.clock.boot,
                since_boot=state.clock.since_boot(),
                policy=policy.hash,
            )
            self.journal.append_now(start)
        except BaseException:
            self.journal.close()
            raise
        self.pipeline = SigningPipeline(
            keyring, policy, self.journal, state, node, chain_id, settings.clock
        )
        callers = Callers(keys.callers, keys.hosts, boot_ms)
        self.origins = Origins(keys.origins)
        self.webhook = None if keys.webhook is None else Webhook(keys.webhook, settings.clock)
        notify = None if self.webhook is None else self.webhook.notify
        most, generating = settings.limits.requests_at_once, Generating(self.pipeline, chain_id)
        self.routes = KeyRoutes(self.pipeline, callers, read, most, generating, notify)

    def begin(self) -> None:
        """Notify of pending requests; called in the event loop."""
        self.routes.pending.notify_all()

    def close(self) -> None:
        """Lock all keys, and close the audit log."""
        self.pipeline.keyring.lock(())
        if self.webhook is not None:
            self.webhook.close()
        for each in self._stored.values():
            each.close()
        self.journal.close()
