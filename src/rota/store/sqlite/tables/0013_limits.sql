-- What a job counts under: the key of a limit, what it takes from buckets (NULL: 1), what it may cost.
ALTER TABLE rota_jobs ADD COLUMN concurrency_key TEXT;
ALTER TABLE rota_jobs ADD COLUMN units INTEGER;
ALTER TABLE rota_jobs ADD COLUMN price REAL;

CREATE TABLE rota_limits (
  name       TEXT    NOT NULL PRIMARY KEY,
  scope      TEXT    NOT NULL,  -- queue, task, tenant, key, family
  subject    TEXT    NOT NULL,  -- what it is for; of a family, the prefix of its keys
  -- the limit in force: the one set at run time, else the one that the code declares
  running    INTEGER,
  every_ns   INTEGER,  -- the time in which a unit of the rate comes back
  burst      INTEGER,
  strict     INTEGER NOT NULL DEFAULT 0,
  full_ns    INTEGER NOT NULL DEFAULT 0,  -- when the bucket is full again, since 1970; not of a family
  declared   TEXT,
  chosen     TEXT,
  version    INTEGER NOT NULL DEFAULT 1,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The buckets of the keys of families.
CREATE TABLE rota_buckets (
  concurrency_key TEXT    NOT NULL PRIMARY KEY,
  full_ns         INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE rota_tenants (
  name           TEXT    NOT NULL PRIMARY KEY,
  weight         REAL    NOT NULL DEFAULT 1,
  max_priority   INTEGER,
  waiting        INTEGER,
  schedules      INTEGER,
  bytes_per_day  INTEGER,
  budget         REAL,  -- cents per period
  period         TEXT,
  budget_alert   REAL,
  retention_days REAL,
  version        INTEGER NOT NULL DEFAULT 1,
  updated_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- What tenants have spent, in cents, by hour, day and month.
CREATE TABLE rota_spending (
  tenant TEXT    NOT NULL,
  unit   TEXT    NOT NULL,  -- hour, day, month
  begins INTEGER NOT NULL,
  amount REAL    NOT NULL,
  PRIMARY KEY (tenant, unit, begins)
) WITHOUT ROWID;

-- Where a job waits that is due. In the line: NULL, or '' if it can also be reached by its tenant. Held, out of
-- the line: '' for what its tenant is under, 'k:KEY' for its key.
ALTER TABLE rota_jobs ADD COLUMN lane TEXT;

CREATE INDEX rota_jobs_tenants ON rota_jobs (queue, rank, tenant, run_at, id)
  WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL;

DROP INDEX rota_jobs_parked;
CREATE INDEX rota_jobs_held ON rota_jobs (queue, tenant, lane, task, rank, run_at, id)
  WHERE state = 'queued' AND due = 2;
UPDATE rota_jobs SET lane = iif(tenant <> 'default' OR due = 2, '', NULL) WHERE state = 'queued' AND due <> 0;

-- Only jobs that have the thing are in these: the keys in use, the jobs that strict keys wait for, the prices
-- that are reserved.
CREATE INDEX rota_jobs_running_key ON rota_jobs (concurrency_key)
  WHERE state = 'running' AND concurrency_key IS NOT NULL;
CREATE INDEX rota_jobs_retried ON rota_jobs (concurrency_key)
  WHERE state = 'queued' AND concurrency_key IS NOT NULL AND (attempt > 0 OR crashes > 0);
CREATE INDEX rota_jobs_priced ON rota_jobs (tenant, price) WHERE state = 'running' AND price IS NOT NULL;

-- One row. A new version with every change of a rule, also by hand. Whether jobs of several tenants have been
-- met: from then on each can be reached by its tenant.
CREATE TABLE rota_claiming (
  one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL,
  fair    INTEGER NOT NULL DEFAULT 0
);
INSERT INTO rota_claiming (one, version) VALUES (1, 0);

CREATE TRIGGER rota_limits_added AFTER INSERT ON rota_limits BEGIN UPDATE rota_claiming SET version = random(); END;
CREATE TRIGGER rota_limits_changed
AFTER UPDATE OF name, scope, subject, running, every_ns, burst, strict, updated_at ON rota_limits
BEGIN
  UPDATE rota_claiming SET version = random();
END;
CREATE TRIGGER rota_limits_dropped AFTER DELETE ON rota_limits BEGIN UPDATE rota_claiming SET version = random(); END;
CREATE TRIGGER rota_tenants_added AFTER INSERT ON rota_tenants BEGIN UPDATE rota_claiming SET version = random(); END;
CREATE TRIGGER rota_tenants_changed AFTER UPDATE ON rota_tenants BEGIN UPDATE rota_claiming SET version = random(); END;
CREATE TRIGGER rota_tenants_dropped AFTER DELETE ON rota_tenants BEGIN UPDATE rota_claiming SET version = random(); END;

-- For the quota of waiting jobs: the count of one tenant's live jobs, beside those of others.
CREATE INDEX rota_jobs_of_tenant ON rota_jobs (tenant) WHERE tenant <> 'default' AND finished_at IS NULL;
