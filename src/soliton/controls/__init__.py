"""Controls of a private chain: time, blocks, state edits, snapshots."""
