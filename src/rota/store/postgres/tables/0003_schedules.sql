-- Schedules: rules that make jobs. A row may be written by hand: if it has neither next_run_at nor
-- check_at, the next scheduler that reads it computes them.

CREATE TABLE rota.schedules (
    id text COLLATE "C" PRIMARY KEY DEFAULT rota.id_at(clock_timestamp())::text,
    name text COLLATE "C" NOT NULL,
    task text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL DEFAULT 'default',
    cron text,
    every double precision,
    at timestamptz,
    timezone text NOT NULL DEFAULT 'UTC',
    start_at timestamptz,
    until timestamptz,
    jitter double precision NOT NULL DEFAULT 0,
    payload json NOT NULL DEFAULT '{}',
    queue text COLLATE "C",
    priority integer,
    max_attempts integer,
    timeout double precision,
    description text NOT NULL DEFAULT '',
    enabled boolean NOT NULL DEFAULT true,
    reason text,
    missed text NOT NULL DEFAULT 'latest',
    missed_cap integer NOT NULL DEFAULT 100,
    missed_window double precision,
    overlap text NOT NULL DEFAULT 'allow',
    calendar text,
    calendar_mode text NOT NULL DEFAULT 'skip',
    source text COLLATE "C" NOT NULL DEFAULT 'sql',
    owner text COLLATE "C",
    declared json,
    next_run_at timestamptz,
    check_at timestamptz,  -- NULL: at once, it has not been computed; infinity: not before it is edited
    held timestamptz[] NOT NULL DEFAULT '{}',
    last_fire_at timestamptz,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A wrong rule disables its own schedule. These would keep a whole batch of jobs from being stored.
    CONSTRAINT name_has_1_to_200_characters CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT task_has_1_to_200_characters CHECK (length(task) BETWEEN 1 AND 200),
    CONSTRAINT tenant_has_1_to_200_characters CHECK (length(tenant) BETWEEN 1 AND 200),
    CONSTRAINT queue_has_1_to_200_characters CHECK (length(queue) BETWEEN 1 AND 200),
    CONSTRAINT max_attempts_is_1_to_100 CHECK (max_attempts BETWEEN 1 AND 100),
    CONSTRAINT priority_has_a_negative CHECK (priority > -2147483648)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
CREATE UNIQUE INDEX schedules_name ON rota.schedules (tenant, name);
CREATE INDEX schedules_look ON rota.schedules (coalesce(check_at, '-infinity'::timestamptz)) WHERE enabled;

-- Programs raise the version themselves.
CREATE TRIGGER edited_by_hand BEFORE UPDATE ON rota.schedules
   FOR EACH ROW WHEN (NEW.version = OLD.version) EXECUTE FUNCTION rota.edited_by_hand();

COMMENT ON TABLE rota.schedules IS
    'Schedules. A row written by hand needs a name, a task and one of cron, every (seconds) and at.';
