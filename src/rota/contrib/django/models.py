"""No models: Django announces the end of ``migrate`` only to apps that have this module."""
