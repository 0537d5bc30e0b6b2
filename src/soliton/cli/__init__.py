"""The commands of the program ``soliton``."""
