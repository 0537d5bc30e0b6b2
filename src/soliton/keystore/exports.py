"""Export of keys for other programs.

What lives here: Keeper's export file. What does not: a single encrypted seed
(``crypto.encrypted_seeds``).

Source: Keeper-Wallet/Keeper-Wallet-Extension
``src/ui/components/pages/exportKeystore/exportKeystore.tsx``.
"""

from __future__ import annotations

import base64
import json

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.crypto.encrypted_seeds import encrypt_text
from soliton.keystore.keys import Secret, SecretKind

_NETWORKS = {"mainnet": "W", "testnet": "T", "stagenet": "S"}


def keeper_export(name: str, secret: Secret, password: str) -> str:
    """Return a ``keystore-accounts-keeper`` file with one account, on every network of Keeper."""
    keys = secret.keys()
    profiles: dict[str, dict[str, list[dict[str, str]]]] = {"custom": {"accounts": []}}
    for network, code in _NETWORKS.items():
        account = {
            "address": address_text(from_public_key(keys.public_key, ord(code))),
            "name": name,
            "network": network,
            "networkCode": code,
        }
        if secret.kind is SecretKind.PHRASE and not secret.nonce:
            account |= {"type": "seed", "seed": secret.plain_text()}
        else:
            account |= {"type": "privateKey", "privateKey": base58.encode(keys.private_key)}
        profiles[network] = {"accounts": [account]}
    encrypted = encrypt_text(json.dumps(profiles), password)
    return json.dumps({"profiles": base64.b64encode(encrypted.encode()).decode()})
