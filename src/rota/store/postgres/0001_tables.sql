-- The state of a job is the table it is in: queued -> running -> done. A change of state is a move.
-- The three tables begin with the same columns; what only one state knows comes last.

CREATE SCHEMA IF NOT EXISTS rota;

CREATE TABLE rota.migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE rota.queued (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    rank integer NOT NULL DEFAULT 0,  -- minus the priority, so that the claim order ascends
    attempt integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 3 CHECK (max_attempts >= 1),
    auto_remove boolean NOT NULL DEFAULT false,
    tenant text COLLATE "C" NOT NULL DEFAULT 'default',
    queue text COLLATE "C" NOT NULL DEFAULT 'default',
    task text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL DEFAULT 'api',
    payload json,  -- NULL: it is large, and stands in rota.payloads
    cost_cents double precision,
    timeout double precision,
    started_at timestamptz,
    scheduled_for timestamptz,
    schedule text COLLATE "C",
    key text COLLATE "C",
    tags text[] COLLATE "C",
    parent uuid,
    backoff json,
    error json,
    progress json,
    cancel_requested boolean NOT NULL DEFAULT false,
    due boolean  -- false: later; NULL: due, but set aside while its tenant is paused
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2,
    -- giving pages back takes an exclusive lock, and the next burst needs them again
    vacuum_truncate = off
);
CREATE UNIQUE INDEX queued_id ON rota.queued (id);
CREATE INDEX queued_due ON rota.queued (queue, rank, run_at, id) WHERE due;
CREATE INDEX queued_later ON rota.queued (run_at) WHERE NOT due;

CREATE TABLE rota.running (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    token bigint NOT NULL,
    rank integer NOT NULL,
    attempt integer NOT NULL,
    max_attempts integer NOT NULL,
    auto_remove boolean NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    payload json,  -- NULL: it is large, and stands in rota.payloads
    cost_cents double precision,
    timeout double precision,
    started_at timestamptz,
    scheduled_for timestamptz,
    schedule text COLLATE "C",
    key text COLLATE "C",
    tags text[] COLLATE "C",
    parent uuid,
    backoff json,
    error json,
    progress json,
    worker text COLLATE "C" NOT NULL,
    lease_until timestamptz NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
CREATE UNIQUE INDEX running_id ON rota.running (id);
CREATE INDEX running_cancel ON rota.running (worker) WHERE cancel_requested;

CREATE TABLE rota.done (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    token bigint NOT NULL,
    rank integer NOT NULL,
    attempt integer NOT NULL,
    max_attempts integer NOT NULL,
    auto_remove boolean NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    payload json,  -- NULL: it is large, and stands in rota.payloads
    cost_cents double precision,
    timeout double precision,
    started_at timestamptz,
    scheduled_for timestamptz,
    schedule text COLLATE "C",
    key text COLLATE "C",
    tags text[] COLLATE "C",
    parent uuid,
    backoff json,
    error json,
    progress json,
    state text COLLATE "C" NOT NULL,
    finished_at timestamptz NOT NULL,
    worker text COLLATE "C",
    output json
) PARTITION BY RANGE (finished_at);
CREATE INDEX done_id ON rota.done (id);
CREATE INDEX done_failed ON rota.done (id) WHERE state = 'failed';
-- a day without a partition of its own must not keep a job from ending
CREATE TABLE rota.done_default PARTITION OF rota.done DEFAULT;

CREATE TABLE rota.attempts (
    job uuid NOT NULL,
    token bigint NOT NULL,
    attempt integer NOT NULL,
    outcome text NOT NULL,
    worker text,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    error json,
    logs json,
    cost_cents double precision,
    PRIMARY KEY (job, token)
);

-- Large payloads stand here, written once: a job moves from table to table, and would carry them along.
CREATE TABLE rota.payloads (
    job uuid PRIMARY KEY,
    body json NOT NULL
);

-- The payload as it stands in the job's own row.
CREATE FUNCTION rota.small(payload text) RETURNS json
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(payload) <= 2000 THEN payload::json END
$$;

-- Only live jobs with a key have a row: taking and freeing it is what makes a key unique.
CREATE TABLE rota.keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (tenant, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, vacuum_truncate = off);

CREATE TABLE rota.documents (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

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

-- Jobs whose end someone waits for; a hint, so it need not survive a crash.
CREATE UNLOGGED TABLE rota.waiters (
    id uuid PRIMARY KEY,
    until timestamptz NOT NULL
);

-- Live jobs, and those that have ended: a question about one kind must not look through the other.
CREATE VIEW rota.live AS
SELECT id, tenant, queue, task, 'queued'::text COLLATE "C" AS state, -rank AS priority,
       coalesce(payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = id)) AS payload,
       NULL::json AS output, error, attempt, max_attempts, run_at, scheduled_for, origin, schedule, key, tags,
       parent, cost_cents, progress, NULL::text COLLATE "C" AS worker, NULL::timestamptz AS lease_until,
       created_at, started_at, NULL::timestamptz AS finished_at, token, timeout, backoff, auto_remove,
       cancel_requested
  FROM rota.queued
UNION ALL
SELECT id, tenant, queue, task, 'running'::text COLLATE "C", -rank,
       coalesce(payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = id)),
       NULL::json, error, attempt, max_attempts, run_at, scheduled_for, origin, schedule, key, tags,
       parent, cost_cents, progress, worker, lease_until,
       created_at, started_at, NULL::timestamptz, token, timeout, backoff, auto_remove,
       cancel_requested
  FROM rota.running;

CREATE VIEW rota.ended AS
SELECT id, tenant, queue, task, state, -rank AS priority,
       coalesce(payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = id)) AS payload,
       output, error, attempt, max_attempts, run_at, scheduled_for, origin, schedule, key, tags,
       parent, cost_cents, progress, worker, NULL::timestamptz AS lease_until,
       created_at, started_at, finished_at, token, timeout, backoff, auto_remove,
       false AS cancel_requested
  FROM rota.done;

CREATE VIEW rota.jobs AS SELECT * FROM rota.live UNION ALL SELECT * FROM rota.ended;

INSERT INTO rota.migrations (version, name) VALUES (1, '0001_tables');
