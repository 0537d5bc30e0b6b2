"""Example answers for the documentation of the API, taken from a private chain.

What lives here: one transfer from its request to the chain, its block and its accounts. What does
not: examples of a single module. A test compares them with the answers of a chain.
"""

from __future__ import annotations

from typing import Final

ADDRESS: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
PUBLIC_KEY: Final = "AXbaBkJNocyrVpwqTzD4TpUY8fQ6eeRto9k1m2bNCzXV"
ENDORSER_KEY: Final = "6Td8o1x3b2yB2yc7mgf6egp4nrD7HcQ8LWtP3SNz2Fv2FhdWdkK8ordxvzwDu8D7Ki"
ACCOUNT_SEED: Final = "HewBh5uTNEGLVpmDPkJoHEi5vbZ6uk7fjKdP5ghiXKBs"
AMOUNT: Final = 9_000_000_000_000_000
ASSET_ID: Final = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"
DATA_ENTRY: Final = {"key": "greeting", "type": "string", "value": "hello"}

_RECIPIENT: Final = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"

FEE_REQUEST: Final[dict[str, object]] = {
    "type": 4,
    "version": 3,
    "senderPublicKey": PUBLIC_KEY,
    "recipient": _RECIPIENT,
    "amount": 100000000,
}
UNSIGNED: Final[dict[str, object]] = {
    "type": 4,
    "version": 3,
    "sender": ADDRESS,
    "recipient": _RECIPIENT,
    "amount": 100000000,
    "fee": 100000,
}

TRANSACTION_ID: Final = "71QkVLWfVZGb88WUYjc1i8A4AaJsyZTJDQMcuxtPnbpR"
SIGNATURE: Final = (
    "2tFJsZSKkz3SVP1smojRNVgZeTRge13bubCnqayvsESP7SCtbPEbnSXGqkRvdYCW2uMxWjhXrFqaTuKj75zHDEKd"
)
TRANSACTION: Final[dict[str, object]] = {
    "type": 4,
    "id": TRANSACTION_ID,
    "fee": 100000,
    "feeAssetId": None,
    "timestamp": 1795174397440,
    "version": 3,
    "chainId": 82,
    "sender": ADDRESS,
    "senderPublicKey": PUBLIC_KEY,
    "proofs": [SIGNATURE],
    "recipient": _RECIPIENT,
    "assetId": None,
    "amount": 100000000,
    "attachment": "",
    "feeAsset": None,
}
CONFIRMED: Final = {
    **TRANSACTION,
    "height": 2,
    "applicationStatus": "succeeded",
    "spentComplexity": 0,
}
STATUS: Final = {
    "status": "confirmed",
    "height": 2,
    "confirmations": 0,
    "applicationStatus": "succeeded",
    "spentComplexity": 0,
    "id": TRANSACTION_ID,
}

NOTHING_WRITTEN: Final = (
    "leaseBalances", "assetStatics", "assetVolumes", "assetNamesAndDescriptions", "assetScripts",
    "sponsorships", "newLeases", "cancelledLeases", "aliases", "orderFills", "accountScripts",
    "accountData", "nextCommittedGenerators",
)  # fmt: skip
SIMULATED: Final[dict[str, object]] = {
    "valid": True,
    "signed": False,
    "height": 2,
    "transaction": {**TRANSACTION, "proofs": []},
    "fee": {"amount": 100000, "least": 100000, "assetId": None},
    "applicationStatus": "succeeded",
    "complexity": 0,
    "spentComplexity": 0,
    "changes": {
        "applicationStatus": "succeeded",
        "balances": [
            {"address": ADDRESS, "asset": None, "balance": 9999999899900000},
            {"address": _RECIPIENT, "asset": None, "balance": 100000100000000},
        ],
        **{name: [] for name in NOTHING_WRITTEN},
    },
    "trace": [],
}

BLOCK_ID: Final = "J69fZDW1eP3QdG4iw7qQFhNaLuF28R7kmbRjFmWujGQ2"
HEADER: Final[dict[str, object]] = {
    "version": 5,
    "timestamp": 1795174397441,
    "reference": (
        "4taZZMuKsjTn4BCse2peTYsdcSacKLqntBer5Jve53CH55j8znj43xmD7j8dKoU9cGsXa8yhh8e1VpX9anQTe1gb"
    ),
    "nxt-consensus": {
        "base-target": 2000000000,
        "generation-signature": (
            "mSNPmpeZYXyY1Hkcau45fhADJTsG9gcd8BiomAgbYFNq2sb7HApNqj8UFGaVYW3P2LKy3M2vWquMdbNZMNSv"
            "pgDS3xQXwHypj1bUXGTnucTg2vH4T4Qtok446qJ1vTDt65n"
        ),
    },
    "transactionsRoot": "4HHiz5VSF7KNXESmMsxHiCFRK1Yy81z4353uhCGJ6JSR",
    "id": BLOCK_ID,
    "features": [],
    "desiredReward": -1,
    "generator": ADDRESS,
    "generatorPublicKey": PUBLIC_KEY,
    "stateHash": "5DiQQ8ZY3Zc3kaLZtr9SdWRW1jyW2MS6LztPN4cqB91c",
    "signature": (
        "nCnLgxupmSkdgQu3v3sRZNjwhRjaGzgaPcskqe9cNktqKZ9q6tzLg1oxwhVGTJJMU8hGmw5kmLXnm9Xo1tJK1yX"
    ),
    "blocksize": 519,
    "transactionCount": 1,
    "height": 2,
    "totalFee": 100000,
    "reward": 6000000000,
    "rewardShares": {ADDRESS: 6000000000},
    "VRF": "HtwV2aHx6bAmiZzBcMcpXS8xkanyFeBcskovifLW12wn",
}
BLOCK: Final = {
    **HEADER,
    "fee": 100000,
    "transactions": [{**TRANSACTION, "applicationStatus": "succeeded"}],
}

ASSET: Final[dict[str, object]] = {
    "assetId": ASSET_ID,
    "issueHeight": 29,
    "issueTimestamp": 1795174599585,
    "issuer": ADDRESS,
    "issuerPublicKey": PUBLIC_KEY,
    "name": "ApiAsset2",
    "description": "d",
    "decimals": 8,
    "reissuable": True,
    "quantity": 5000000000,
    "scripted": False,
    "minSponsoredAssetFee": None,
    "originTransactionId": ASSET_ID,
    "sequenceInBlock": 2,
}
ISSUE: Final[dict[str, object]] = {
    "type": 3,
    "id": ASSET_ID,
    "fee": 100000000,
    "feeAssetId": None,
    "timestamp": 1795174599585,
    "version": 3,
    "chainId": 82,
    "sender": ADDRESS,
    "senderPublicKey": PUBLIC_KEY,
    "proofs": [
        "3Ep5WnoTqF7fLrdbX3qRvCPmTGEwX7yb5rLPvxPaYxJfGBWmTsiLNnrPVTpHN5mXvvBvvUPn9dKjYvRgVqUdyrKf"
    ],
    "name": "ApiAsset2",
    "quantity": 5000000000,
    "reissuable": True,
    "decimals": 8,
    "description": "d",
    "script": None,
    "assetId": ASSET_ID,
}

_EMPTY_SECTION: Final = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"
STATE_HASH: Final = {
    "stateHash": "59dce60ebb214b20106acb9040ee146da64b101d01f1154ec6095d5a7878c613",
    "wavesBalanceHash": "88c3a2b9e2c757bc3c8d982228599513e0d03e384fe8f82f1b86169fc16fcb5e",
    "assetBalanceHash": _EMPTY_SECTION,
    "dataEntryHash": _EMPTY_SECTION,
    "accountScriptHash": _EMPTY_SECTION,
    "assetScriptHash": _EMPTY_SECTION,
    "leaseBalanceHash": _EMPTY_SECTION,
    "leaseStatusHash": _EMPTY_SECTION,
    "sponsorshipHash": _EMPTY_SECTION,
    "aliasHash": _EMPTY_SECTION,
    "nextCommittedGeneratorsHash": _EMPTY_SECTION,
    "committedGeneratorBalancesHash": _EMPTY_SECTION,
    "snapshotHash": "fmK5Kc7cYmaT4DpqBcaEvK5musAo3Uii19kdbPogzNo",
    "blockId": (
        "4taZZMuKsjTn4BCse2peTYsdcSacKLqntBer5Jve53CH55j8znj43xmD7j8dKoU9cGsXa8yhh8e1VpX9anQTe1gb"
    ),
    "baseTarget": 2000000000,
    "height": 1,
    "version": "1.6.6",
}

RIDE_SOURCE: Final = "{-# STDLIB_VERSION 6 #-}\ntrue"
RIDE_SCRIPT: Final = "base64:BgEGsNFPzw=="
RIDE_DECOMPILED: Final = (
    "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
    "{-# SCRIPT_TYPE ACCOUNT #-}\n\ntrue\n"
)
