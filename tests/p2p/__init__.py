"""The node among its peers."""
