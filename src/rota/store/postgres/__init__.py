"""The PostgreSQL store. Importing the package imports no driver; ``store.py`` does."""
