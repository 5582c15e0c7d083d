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

-- What tenants have spent, in cents, by hour, day and month, and the bytes of their payloads by day.
CREATE TABLE rota_spending (
  tenant TEXT    NOT NULL,
  unit   TEXT    NOT NULL,  -- hour, day, month, bytes
  begins INTEGER NOT NULL,
  amount REAL    NOT NULL,
  PRIMARY KEY (tenant, unit, begins)
) WITHOUT ROWID;
