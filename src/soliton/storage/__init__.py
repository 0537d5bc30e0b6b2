"""The store on disk: state, blocks, indexes and undo records in one embedded database."""
