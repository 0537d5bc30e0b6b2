"""Pages for people: their files, and how they are served."""
