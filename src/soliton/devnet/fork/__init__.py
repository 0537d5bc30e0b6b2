"""A private chain on top of another node's chain, which is read over REST as needed."""
