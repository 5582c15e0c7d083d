CREATE TABLE rota_migrations (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Instants are microseconds since 1970 in UTC. A larger priority is a smaller rank.
CREATE TABLE rota_jobs (
  id               TEXT    NOT NULL,
  task             TEXT    NOT NULL,
  state            TEXT    NOT NULL,
  due              INTEGER NOT NULL,                   -- of a queued job. 0: later, 1: now, 2: set aside
  queue            TEXT    NOT NULL,
  tenant           TEXT    NOT NULL,
  rank             INTEGER NOT NULL,
  payload_json     TEXT    NOT NULL,
  output_json      TEXT,
  error_json       TEXT,
  attempt          INTEGER NOT NULL DEFAULT 0,
  max_attempts     INTEGER NOT NULL,
  token            INTEGER NOT NULL DEFAULT 0,
  run_at           INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  started_at       INTEGER,
  finished_at      INTEGER,                            -- set if and only if the state is final
  lease_until      INTEGER,
  worker           TEXT,
  timeout          REAL,
  backoff_json     TEXT,
  key              TEXT,
  slot             TEXT,                               -- the key while the job is live
  auto_remove      INTEGER NOT NULL DEFAULT 0,
  tags_json        TEXT,
  parent           TEXT,
  origin           TEXT    NOT NULL,
  schedule         TEXT,
  scheduled_for    INTEGER,
  cost_cents       REAL    NOT NULL DEFAULT 0,
  progress_json    TEXT,
  cancel_requested INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX rota_jobs_id ON rota_jobs (id);

-- The hot path. A job stands in at most one of these four.
CREATE INDEX rota_jobs_ready ON rota_jobs (queue, task, rank, run_at, id) WHERE state = 'queued' AND due = 1;
CREATE INDEX rota_jobs_later ON rota_jobs (run_at, queue) WHERE state = 'queued' AND due = 0;
CREATE INDEX rota_jobs_running ON rota_jobs (lease_until, queue) WHERE state = 'running';
-- Due jobs of paused tenants: out of the way of claims.
CREATE INDEX rota_jobs_aside ON rota_jobs (tenant, queue, task, rank, run_at, id)
  WHERE state = 'queued' AND due = 2;

CREATE INDEX rota_jobs_asked_to_stop ON rota_jobs (worker) WHERE state = 'running' AND cancel_requested = 1;

CREATE UNIQUE INDEX rota_jobs_slot ON rota_jobs (tenant, slot) WHERE slot IS NOT NULL;
CREATE INDEX rota_jobs_finished ON rota_jobs (state, finished_at) WHERE finished_at IS NOT NULL;

-- For listings; each holds only the rows that have the thing.
CREATE INDEX rota_jobs_live ON rota_jobs (id) WHERE finished_at IS NULL;
CREATE INDEX rota_jobs_waiting ON rota_jobs (id) WHERE state = 'waiting';
CREATE INDEX rota_jobs_failed ON rota_jobs (id) WHERE state = 'failed';
CREATE INDEX rota_jobs_cancelled ON rota_jobs (id) WHERE state = 'cancelled';
CREATE INDEX rota_jobs_key ON rota_jobs (key, id) WHERE key IS NOT NULL;
CREATE INDEX rota_jobs_parent ON rota_jobs (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX rota_jobs_schedule ON rota_jobs (schedule, id) WHERE schedule IS NOT NULL;

CREATE TABLE rota_attempts (
  job         TEXT    NOT NULL,
  token       INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  outcome     TEXT    NOT NULL,
  worker      TEXT,
  started_at  INTEGER,
  finished_at INTEGER NOT NULL,
  error_json  TEXT,
  logs_json   TEXT,
  cost_cents  REAL    NOT NULL DEFAULT 0,
  PRIMARY KEY (job, token)
) WITHOUT ROWID;

CREATE TABLE rota_documents (
  kind       TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;

-- How many jobs ended how, so that nobody has to count them: final jobs still stored, and under the
-- state 'removed' those that deleted themselves.
CREATE TABLE rota_tally (
  state  TEXT    NOT NULL,
  minute INTEGER NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  n      INTEGER NOT NULL,
  PRIMARY KEY (state, minute, queue, task)
) WITHOUT ROWID;

INSERT INTO rota_migrations (version, name) VALUES (1, '0001_jobs');
