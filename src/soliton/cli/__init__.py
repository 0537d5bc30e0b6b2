"""The commands of the ``soliton`` program."""
