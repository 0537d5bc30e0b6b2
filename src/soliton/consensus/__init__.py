"""Who may make a block, when, and for which reward: plain functions on numbers and headers."""
