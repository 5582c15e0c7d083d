-- How many leases of a job were lost in a row: counted apart from its failed attempts. NULL: none.
ALTER TABLE rota.queued ADD COLUMN crashes integer;
ALTER TABLE rota.running ADD COLUMN crashes integer;
ALTER TABLE rota.done ADD COLUMN crashes integer;
