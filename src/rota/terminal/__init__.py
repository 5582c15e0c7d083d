"""Text for a terminal: safe strings, tables, times and schedules. Prints; decides nothing and reads no store."""
