-- How many leases of a job were lost in a row: counted apart from its failed attempts.
ALTER TABLE rota_jobs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
