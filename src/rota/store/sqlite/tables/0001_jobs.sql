-- Instants are microseconds since 1970 in UTC. A larger priority is a smaller rank.
CREATE TABLE rota_jobs (
    due INTEGER NOT NULL,  -- of a queued job. 0: later, 1: now, 2: held
    slot TEXT,  -- the key while the job is live
    {job columns except crashes, expires_at, keep, snoozes, concurrency_key, units, price}
);

CREATE UNIQUE INDEX rota_jobs_id ON rota_jobs (id);

-- The hot path. A job is in at most one of these four.
CREATE INDEX rota_jobs_ready ON rota_jobs (queue, task, rank, run_at, id) WHERE state = 'queued' AND due = 1;
CREATE INDEX rota_jobs_later ON rota_jobs (run_at, queue) WHERE state = 'queued' AND due = 0;
CREATE INDEX rota_jobs_running ON rota_jobs (lease_until, queue) WHERE state = 'running';
-- Due jobs of paused tenants: out of the way of claims.
CREATE INDEX rota_jobs_parked ON rota_jobs (tenant, queue, task, rank, run_at, id)
  WHERE state = 'queued' AND due = 2;

CREATE INDEX rota_jobs_cancel_requested ON rota_jobs (worker) WHERE state = 'running' AND cancel_requested = 1;

CREATE UNIQUE INDEX rota_jobs_slot ON rota_jobs (tenant, slot) WHERE slot IS NOT NULL;
CREATE INDEX rota_jobs_finished ON rota_jobs (state, finished_at) WHERE finished_at IS NOT NULL;

-- For listings; each holds only the rows that have the thing.
CREATE INDEX rota_jobs_live ON rota_jobs (id) WHERE finished_at IS NULL;
CREATE INDEX rota_jobs_waiting ON rota_jobs (id) WHERE state = 'waiting';
CREATE INDEX rota_jobs_failed ON rota_jobs (id) WHERE state = 'failed';
CREATE INDEX rota_jobs_cancelled ON rota_jobs (id) WHERE state = 'cancelled';
{narrow indexes}
-- To search in errors among millions of jobs that had none.
CREATE INDEX rota_jobs_error ON rota_jobs (id) WHERE error_json IS NOT NULL;
-- The jobs that schedules have made.
CREATE INDEX rota_jobs_scheduled ON rota_jobs (id) WHERE schedule IS NOT NULL;
CREATE INDEX rota_jobs_tenant_schedule ON rota_jobs (schedule, tenant, id) WHERE schedule IS NOT NULL;
CREATE INDEX rota_jobs_schedule_live ON rota_jobs (schedule, tenant, id)
  WHERE schedule IS NOT NULL AND finished_at IS NULL;

CREATE TABLE rota_attempts (
  job         TEXT    NOT NULL,
  lease_token INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  outcome     TEXT    NOT NULL,
  worker      TEXT,
  started_at  INTEGER,
  finished_at INTEGER NOT NULL,
  error_json  TEXT,
  logs_json   TEXT,
  cost_cents  REAL    NOT NULL DEFAULT 0,
  PRIMARY KEY (job, lease_token)
) WITHOUT ROWID;

-- How many jobs ended how, so that they need not be counted: final jobs still stored, and under the
-- state 'removed' those that deleted themselves.
CREATE TABLE rota_tally (
  state  TEXT    NOT NULL,
  minute INTEGER NOT NULL,
  queue  TEXT    NOT NULL,
  task   TEXT    NOT NULL,
  n      INTEGER NOT NULL,
  PRIMARY KEY (state, minute, queue, task)
) WITHOUT ROWID;
