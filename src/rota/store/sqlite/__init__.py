"""The SQLite store: one file, or one private database in memory."""
