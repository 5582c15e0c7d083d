-- What a job counts under: the key of a limit, what it takes from buckets (NULL: 1), what it may cost.
ALTER TABLE rota.queued ADD COLUMN concurrency_key text COLLATE "C";
ALTER TABLE rota.queued ADD COLUMN units integer;
ALTER TABLE rota.queued ADD COLUMN price double precision;
ALTER TABLE rota.running ADD COLUMN concurrency_key text COLLATE "C";
ALTER TABLE rota.running ADD COLUMN units integer;
ALTER TABLE rota.running ADD COLUMN price double precision;
ALTER TABLE rota.done ADD COLUMN concurrency_key text COLLATE "C";
ALTER TABLE rota.done ADD COLUMN units integer;
ALTER TABLE rota.done ADD COLUMN price double precision;

-- The lane that a job waits in. In the line: NULL, or '' once there are tenants beside the default one. Held, that
-- is due but out of the line (due IS NULL): '' of its tenant, k:KEY of its key, t:TASK of its task.
ALTER TABLE rota.queued ADD COLUMN lane text COLLATE "C";
-- Which limits a job counts under: 1 of its queue, 2 task, 4 tenant, 8 key; 16: it took from a bucket.
ALTER TABLE rota.running ADD COLUMN ruled smallint;
UPDATE rota.queued SET lane = '' WHERE due IS NULL OR tenant <> 'default';
DROP INDEX rota.queued_parked;
CREATE INDEX queued_tenant ON rota.queued (segment, queue, rank, tenant, run_at, id) WHERE due AND lane IS NOT NULL;
CREATE INDEX queued_held ON rota.queued (queue, rank, lane, tenant, run_at, id) WHERE due IS NULL;
CREATE INDEX queued_held_keys ON rota.queued (concurrency_key, queue, tenant, rank, run_at, id)
    WHERE due IS NULL AND concurrency_key IS NOT NULL;
CREATE INDEX queued_retried ON rota.queued (concurrency_key)
    WHERE concurrency_key IS NOT NULL AND (attempt > 0 OR crashes > 0);
CREATE INDEX running_queue ON rota.running (queue) WHERE ruled & 1 <> 0;
CREATE INDEX running_task ON rota.running (task) WHERE ruled & 2 <> 0;
CREATE INDEX running_tenant ON rota.running (tenant) WHERE ruled & 4 <> 0;
CREATE INDEX running_key ON rota.running (concurrency_key) WHERE ruled & 8 <> 0;
-- Whether claims have to look for lanes and rules at all; whether there are tenants beside the default one; which
-- kinds of rules there are: 1 queue, 2 task, 4 tenant, 8 key, 16 family, 32 weight, 64 budget,
-- 128 strict.
ALTER TABLE rota.segments ADD COLUMN fair boolean NOT NULL DEFAULT false;
ALTER TABLE rota.segments ADD COLUMN many boolean NOT NULL DEFAULT false;
ALTER TABLE rota.segments ADD COLUMN rules smallint NOT NULL DEFAULT 0;
UPDATE rota.segments SET fair = true, many = true WHERE EXISTS (SELECT FROM rota.queued WHERE lane IS NOT NULL);

CREATE TABLE rota.limits (
    name text COLLATE "C" PRIMARY KEY,
    scope text COLLATE "C" NOT NULL,  -- queue, task, tenant, key, family
    subject text COLLATE "C" NOT NULL,  -- what it is for; of a family, the prefix of its keys
    -- the limit in force: the one set at run time, else the one that the code declares
    running integer,
    every_ns bigint,  -- the time in which a unit of the rate comes back
    burst bigint,
    strict boolean NOT NULL DEFAULT false,
    full_ns bigint NOT NULL DEFAULT 0,  -- when the bucket is full again, in nanoseconds since 1970; not of a family
    declared json,
    chosen json,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX limits_families ON rota.limits (subject) WHERE scope = 'family';

-- The buckets of the keys of families.
CREATE TABLE rota.buckets (
    concurrency_key text COLLATE "C" PRIMARY KEY,
    full_ns bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE rota.tenants (
    name text COLLATE "C" PRIMARY KEY,
    weight double precision NOT NULL DEFAULT 1,
    max_priority integer,
    waiting bigint,
    schedules integer,
    bytes_per_day bigint,
    budget double precision,  -- cents per period
    period text COLLATE "C",
    budget_alert double precision,
    retention_days double precision,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- What tenants have spent, in cents, by hour, day and month; slots keep concurrent workers from waiting for one
-- row.
CREATE TABLE rota.spending (
    tenant text COLLATE "C" NOT NULL,
    unit text COLLATE "C" NOT NULL,  -- hour, day, month
    begins timestamptz NOT NULL,
    slot smallint NOT NULL,
    amount double precision NOT NULL,
    PRIMARY KEY (tenant, unit, begins, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

COMMENT ON TABLE rota.limits IS 'Limits on what runs at once and how fast. Change them with rota limits set.';
COMMENT ON TABLE rota.buckets IS 'The rates of single keys, where a limit is for a family of keys.';
COMMENT ON TABLE rota.tenants IS 'What tenants are entitled to. Change it with rota tenants set.';
COMMENT ON TABLE rota.spending IS 'What tenants have spent, in cents.';

-- For the quota of waiting jobs: the count of one tenant's, beside millions of others.
CREATE INDEX queued_of_tenant ON rota.queued (tenant) WHERE tenant <> 'default';
