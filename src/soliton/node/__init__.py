"""The node: one chain, its pool, wallet, miner and importer, put together in ``node.Node``."""
