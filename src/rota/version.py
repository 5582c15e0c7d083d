"""The version of this package, apart from the public names so that every layer can import it."""

__version__ = "0.1.0"
