"""Text for a terminal: safe strings, tables, times and schedules. Decides nothing and reads no store."""
