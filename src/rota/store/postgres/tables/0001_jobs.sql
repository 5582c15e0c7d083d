-- The state of a job is the table it is in: queued -> running -> done. A change of state is a move.
-- The three tables begin with the same columns; what only some states have comes last.

CREATE TABLE rota.queued (
    {queued columns except crashes, expires_at, keep, snoozes, concurrency_key, units, price},
    due boolean,  -- false: later; NULL: due, but parked while its tenant is paused
    CONSTRAINT queued_max_attempts_check CHECK (max_attempts >= 1)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2,
    -- giving pages back takes an exclusive lock, and the next burst needs them again
    vacuum_truncate = off
);
CREATE UNIQUE INDEX queued_id ON rota.queued (id);
CREATE INDEX queued_due ON rota.queued (queue, rank, run_at, id) WHERE due;
CREATE INDEX queued_later ON rota.queued (run_at) WHERE NOT due;
-- Due jobs of paused tenants, out of the way of claims: see rota.park.
CREATE INDEX queued_parked ON rota.queued (tenant, queue, rank, run_at, id) WHERE due IS NULL;
-- Live jobs of a schedule; only jobs that a schedule made pay for it.
CREATE INDEX queued_schedule ON rota.queued (schedule, tenant, id) WHERE schedule IS NOT NULL;

CREATE TABLE rota.running (
    {running columns except crashes, expires_at, keep, snoozes, concurrency_key, units, price}
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
CREATE UNIQUE INDEX running_id ON rota.running (id);
CREATE INDEX running_cancel ON rota.running (worker) WHERE cancel_requested;
CREATE INDEX running_schedule ON rota.running (schedule, tenant, id) WHERE schedule IS NOT NULL;

CREATE TABLE rota.done (
    {done columns except crashes, expires_at, keep, snoozes, concurrency_key, units, price}
) PARTITION BY RANGE (finished_at);
CREATE INDEX done_id ON rota.done (id);
CREATE INDEX done_failed ON rota.done (id) WHERE state = 'failed';
-- Runs, newest first: of all schedules, of one name, of one tenant's schedule.
CREATE INDEX done_scheduled ON rota.done (id) WHERE schedule IS NOT NULL;
CREATE INDEX done_schedule ON rota.done (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX done_tenant_schedule ON rota.done (schedule, tenant, id) WHERE schedule IS NOT NULL;
-- a day without a partition of its own must not keep a job from ending
CREATE TABLE rota.done_default PARTITION OF rota.done DEFAULT;

CREATE TABLE rota.attempts (
    job uuid NOT NULL,
    lease_token bigint NOT NULL,
    attempt integer NOT NULL,
    outcome text NOT NULL,
    worker text,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    error json,
    logs json,
    cost_cents double precision,
    PRIMARY KEY (job, lease_token)
);

-- Large payloads are written once: a job moves from table to table, and would carry them along.
CREATE TABLE rota.payloads (
    job uuid PRIMARY KEY,
    body json NOT NULL
);

-- Only live jobs with a key have a row: taking and freeing it is what makes a key unique.
CREATE TABLE rota.keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (tenant, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, vacuum_truncate = off);

-- How many jobs ended, by minute; slots keep concurrent workers from waiting for one row.
CREATE TABLE rota.tally (
    minute timestamptz NOT NULL,
    queue text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    slot smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (minute, queue, task, state, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Jobs whose end a client waits for; a hint, so it need not survive a crash.
CREATE UNLOGGED TABLE rota.waiters (
    id uuid PRIMARY KEY,
    until timestamptz NOT NULL
);

COMMENT ON TABLE rota.queued IS 'Jobs that wait for a worker. Read the view rota.jobs instead.';
COMMENT ON TABLE rota.running IS 'Jobs that a worker has claimed, with its lease. Read the view rota.jobs instead.';
COMMENT ON TABLE rota.done IS 'Finished jobs, one partition per UTC day. Read the view rota.jobs instead.';
COMMENT ON TABLE rota.attempts IS 'Recorded attempts; a first attempt that succeeds without logs has no row.';
COMMENT ON TABLE rota.payloads IS 'Large payloads, by job. The view rota.jobs shows them.';
COMMENT ON TABLE rota.keys IS 'The idempotency keys of live jobs: one job per tenant and key.';
COMMENT ON TABLE rota.tally IS 'Finished jobs per minute, later per hour, by queue, task and state.';
COMMENT ON TABLE rota.waiters IS 'Jobs whose end somebody waits for. A hint: rows may be lost.';
