"""The routes of the manager, by subject."""
