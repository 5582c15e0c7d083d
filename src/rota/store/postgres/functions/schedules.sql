-- Schedules: writing, reading and firing them.

-- Writes each row whose version is the given one, and raises it; the ids that were written.
-- JSON inside JSON travels as text: see rows.py.
CREATE FUNCTION rota.write_schedules(given json[], now timestamptz) RETURNS text[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    written text[];
BEGIN
    -- Read once: joined row by row, with statistics of a table that was empty, it would be read for each
    -- schedule there is.
    WITH fresh AS MATERIALIZED (
        SELECT g.*, j->>'payload_json' AS payload_json, j->>'declared_json' AS declared_json
          FROM unnest(given) AS j, LATERAL json_populate_record(NULL::rota.schedules, j) AS g
    ), done AS (
        UPDATE rota.schedules AS s SET
            name = g.name, task = g.task, tenant = g.tenant, cron = g.cron, every = g.every, at = g.at,
            timezone = g.timezone, start_at = g.start_at, until = g.until, jitter = coalesce(g.jitter, 0),
            payload = g.payload_json::json, queue = g.queue, priority = g.priority,
            max_attempts = g.max_attempts, timeout = g.timeout, description = g.description, enabled = g.enabled,
            reason = g.reason, missed = g.missed, missed_cap = g.missed_cap, missed_window = g.missed_window,
            overlap = g.overlap, calendar = g.calendar, calendar_mode = g.calendar_mode, source = g.source,
            owner = g.owner, declared = g.declared_json::json, next_run_at = g.next_run_at,
            manual_run_at = g.manual_run_at, check_at = coalesce(g.check_at, 'infinity'), held = g.held, last_fire_at = g.last_fire_at,
            version = s.version + 1, created_at = g.created_at, updated_at = now
          FROM fresh AS g
         WHERE s.id = ANY (ARRAY(SELECT f.id FROM fresh AS f)) AND s.id = g.id AND s.version = g.version
        RETURNING s.id
    )
    SELECT array_agg(id) INTO written FROM done;
    RETURN written;
END
$$;

-- The new version; NULL if it exists already, has another version, or wants a name that is taken.
CREATE FUNCTION rota.put_schedule(given json, now timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    made rota.schedules := json_populate_record(NULL::rota.schedules, given);
    written bigint;
BEGIN
    IF made.version <> 0 THEN
        IF rota.write_schedules(ARRAY[given], now) IS NULL THEN
            RETURN NULL;
        END IF;
        PERFORM pg_notify('rota_schedules', '');
        RETURN made.version + 1;
    END IF;
    made.payload := given->>'payload_json';
    made.declared := given->>'declared_json';
    made.version := 1;
    made.updated_at := now;
    -- a new one without any times is to be computed, like one made by hand; else their absence is meant
    IF made.next_run_at IS NOT NULL OR made.last_fire_at IS NOT NULL THEN
        made.check_at := coalesce(made.check_at, 'infinity');
    END IF;
    INSERT INTO rota.schedules VALUES (made.*) ON CONFLICT DO NOTHING RETURNING version INTO written;
    RETURN written;
EXCEPTION
    WHEN unique_violation THEN
        RETURN NULL;
END
$$;

-- In the order of their names, so that two programs that declare the same never wait for each other.
CREATE FUNCTION rota.put_schedules(schedules json, now timestamptz) RETURNS TABLE (ord bigint, version bigint)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    given json;
BEGIN
    FOR ord, given IN
        SELECT o, j FROM json_array_elements(schedules) WITH ORDINALITY AS x(j, o)
         ORDER BY j->>'tenant' COLLATE "C", j->>'name' COLLATE "C", o
    LOOP
        version := rota.put_schedule(given, now);
        RETURN NEXT;
    END LOOP;
END
$$;

-- Enabled schedules that are to be checked now, the most overdue first; and last the next one that will
-- be. Nothing due: two index probes.
CREATE FUNCTION rota.due_schedules(now timestamptz, most integer) RETURNS SETOF rota.schedules
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
        SELECT * FROM rota.schedules
         WHERE enabled AND coalesce(check_at, '-infinity'::timestamptz) <= now
         ORDER BY coalesce(check_at, '-infinity'::timestamptz) LIMIT most;
    RETURN QUERY
        SELECT * FROM rota.schedules
         WHERE enabled AND coalesce(check_at, '-infinity'::timestamptz) > now
           AND coalesce(check_at, '-infinity'::timestamptz) < 'infinity'
         ORDER BY coalesce(check_at, '-infinity'::timestamptz) LIMIT 1;
END
$$;

-- Each firing whole or not at all: the schedules that were refused because their version moved on, they
-- are no longer enabled, or another session is writing them. It never waits for a lock.
-- A firing is {"s": the row to write, with the version that is expected, "j": its jobs}.
CREATE FUNCTION rota.fire(firings json, now timestamptz) RETURNS text[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    ids text[];
    versions bigint[];
    given json[];
    jobs json[];
    fit text[];
    new_jobs json;
    keyed boolean;
BEGIN
    SELECT array_agg(s->>'id'), array_agg((s->>'version')::bigint), array_agg(s), array_agg(j)
      INTO ids, versions, given, jobs FROM json_to_recordset(firings) AS f(s json, j json);
    fit := ARRAY(
        SELECT s.id FROM rota.schedules AS s
         WHERE s.id = ANY (ids) AND s.enabled
           AND ((s.id, s.version) IN (SELECT * FROM unnest(ids, versions))) IS TRUE
         ORDER BY s.id FOR UPDATE SKIP LOCKED);
    fit := rota.write_schedules(
        ARRAY(SELECT g FROM unnest(ids, given) AS x(id, g) WHERE id IN (SELECT * FROM unnest(fit))), now);
    SELECT json_agg(job), bool_or(job->>'key' IS NOT NULL) INTO new_jobs, keyed
      FROM unnest(ids, jobs) AS x(id, j), json_array_elements(j) AS job WHERE id IN (SELECT * FROM unnest(fit));
    IF keyed THEN
        PERFORM FROM rota.insert_jobs(new_jobs, now, true, false);
    ELSIF new_jobs IS NOT NULL THEN
        PERFORM FROM rota.insert_plain(new_jobs, now, true, false);
    END IF;
    RETURN ARRAY(SELECT * FROM unnest(ids) EXCEPT SELECT * FROM unnest(fit));
END
$$;

-- Of the schedules, those with a live job. One statement, hence one snapshot: a job that is moving
-- between the tables is seen. LIMIT keeps the planner from reading all jobs at once instead of probing.
CREATE FUNCTION rota.busy(tenants text[], names text[]) RETURNS TABLE (tenant text, name text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT a.tenant, a.name FROM unnest(tenants, names) AS a(tenant, name), LATERAL (
            SELECT FROM rota.queued AS q WHERE q.schedule = a.name AND q.tenant = a.tenant
            UNION ALL
            SELECT FROM rota.running AS r WHERE r.schedule = a.name AND r.tenant = a.tenant
            LIMIT 1) AS live;
END
$$;
