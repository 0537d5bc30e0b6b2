"""A private chain that obeys: time, blocks and state by hand, snapshots of all of it."""
