"""A private chain on top of another node's, whose state is read over REST when somebody asks."""
