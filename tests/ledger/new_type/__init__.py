"""A transaction type that no network has: what it takes to add one."""
