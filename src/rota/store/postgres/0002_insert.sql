-- Storing jobs: rota.insert_jobs for programs, rota.enqueue for people.
-- Every hot function pins its plans: fresh or stale statistics must never turn a probe into a scan,
-- and jit must not be woken by the cost of a disabled path.

CREATE FUNCTION rota.born_at(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- The time inside a UUIDv7; other ids say nothing about it.
    SELECT CASE WHEN substr(id::text, 15, 1) = '7'
                THEN to_timestamp((('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint) / 1000.0)
                ELSE '-infinity' END
$$;

CREATE FUNCTION rota.id_at(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
            || substr(r, 14, 3) || substr('89ab', 1 + ('x' || substr(r, 17, 1))::bit(4)::int % 4, 1)
            || substr(r, 18))::uuid
      FROM (SELECT replace(gen_random_uuid()::text, '-', '')) AS random(r)
$$;

-- A job with a key, one at a time: whoever takes the row in rota.keys wins.
CREATE FUNCTION rota.insert_keyed(job json, now timestamptz, again boolean, OUT id uuid, OUT outcome text, OUT state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    j record;
    holder uuid;
BEGIN
    SELECT * INTO j FROM json_to_record(job) AS x(
        id uuid, task text, payload_json text, queue text, tenant text, priority integer, run_at timestamptz,
        max_attempts integer, timeout double precision, backoff json, key text, on_conflict text,
        auto_remove boolean, tags text[], parent uuid, origin text);
    id := j.id;
    outcome := 'existing';
    SELECT s.state INTO state FROM rota.states(ARRAY[j.id], again) AS s;
    IF FOUND THEN
        RETURN;
    END IF;
    LOOP
        INSERT INTO rota.keys (tenant, key, job) VALUES (coalesce(j.tenant, 'default'), j.key, j.id)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM rota.insert_plain(json_build_array(job), now);
            outcome := 'created';
            state := 'queued';
            RETURN;
        END IF;
        SELECT k.job INTO holder FROM rota.keys AS k
         WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key;
        CONTINUE WHEN NOT FOUND;
        id := holder;
        IF j.on_conflict = 'replace' THEN
            UPDATE rota.queued SET
                task = j.task, payload = j.payload_json::json, queue = coalesce(j.queue, 'default'),
                rank = -coalesce(j.priority, 0), run_at = coalesce(j.run_at, now),
                due = coalesce(j.run_at, now) <= now, max_attempts = coalesce(j.max_attempts, 3),
                timeout = j.timeout, backoff = j.backoff, auto_remove = coalesce(j.auto_remove, false),
                tags = j.tags, parent = j.parent, origin = coalesce(j.origin, 'api'), attempt = 0, error = NULL
             WHERE id = holder;
            IF FOUND THEN
                outcome := 'replaced';
                state := 'queued';
                RETURN;
            END IF;
        END IF;
        -- one statement, one snapshot: a job moving between tables is seen in exactly one of them
        SELECT s.state INTO state FROM rota.states(ARRAY[holder], false) AS s;
        IF FOUND THEN
            CONTINUE WHEN j.on_conflict = 'replace' AND state = 'queued';
            outcome := CASE WHEN j.on_conflict = 'return' THEN 'existing' ELSE 'refused' END;
            RETURN;
        END IF;
        -- nobody alive holds it: its row was left behind by hand
        DELETE FROM rota.keys AS k
         WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key AND k.job = holder;
    END LOOP;
END
$$;

-- Where the given jobs are; those that ended only if asked for.
CREATE FUNCTION rota.states(ids uuid[], ended boolean) RETURNS TABLE (id uuid, state text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    since timestamptz;
BEGIN
    IF NOT ended THEN
        RETURN QUERY SELECT q.id, 'queued' FROM rota.queued AS q WHERE q.id = ANY (ids)
            UNION ALL SELECT r.id, 'running' FROM rota.running AS r WHERE r.id = ANY (ids);
    ELSE
        -- no job ends before it was made: older partitions need no look (a day for crooked clocks)
        SELECT min(rota.born_at(i)) - interval '1 day' INTO since FROM unnest(ids) AS i;
        RETURN QUERY SELECT q.id, 'queued' FROM rota.queued AS q WHERE q.id = ANY (ids)
            UNION ALL SELECT r.id, 'running' FROM rota.running AS r WHERE r.id = ANY (ids)
            UNION ALL SELECT d.id, d.state::text FROM rota.done AS d WHERE d.id = ANY (ids) AND d.finished_at >= since;
    END IF;
END
$$;

-- Jobs whose ids are new go into the queue; returns those that did.
CREATE FUNCTION rota.insert_plain(jobs json, now timestamptz) RETURNS uuid[]
LANGUAGE sql AS $$
    WITH stored AS (
        INSERT INTO rota.queued AS q (
            id, created_at, run_at, rank, max_attempts, auto_remove, tenant, queue, task, origin, payload, timeout,
            scheduled_for, schedule, key, tags, parent, backoff, due)
        SELECT j.id, now, coalesce(j.run_at, now), -coalesce(j.priority, 0), coalesce(j.max_attempts, 3),
               coalesce(j.auto_remove, false), coalesce(j.tenant, 'default'), coalesce(j.queue, 'default'), j.task,
               coalesce(j.origin, 'api'), coalesce(j.payload_json, '{}')::json, j.timeout, j.scheduled_for,
               j.schedule, j.key, j.tags, j.parent, j.backoff, coalesce(j.run_at, now) <= now
          FROM json_to_recordset(jobs) AS j(
               id uuid, task text, payload_json text, queue text, tenant text, priority integer, run_at timestamptz,
               max_attempts integer, timeout double precision, backoff json, key text, auto_remove boolean,
               tags text[], parent uuid, origin text, schedule text, scheduled_for timestamptz)
        ON CONFLICT DO NOTHING
        RETURNING q.id)
    SELECT array_agg(id) FROM stored
$$;

-- Store jobs; answers in their order. again: an id that has ended already counts as stored.
-- wake: tell the workers when this transaction commits. now = NULL: the server's time.
CREATE FUNCTION rota.insert_jobs(jobs json, now timestamptz, again boolean, wake boolean)
RETURNS TABLE (ord bigint, id uuid, outcome text, state text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    at CONSTANT timestamptz := coalesce(now, clock_timestamp());
    plain json;
    keyed boolean;
    fresh uuid[];
    there uuid[];
    states text[];
    one record;
    told record;
BEGIN
    SELECT json_agg(j) FILTER (WHERE k IS NULL), bool_or(k IS NOT NULL) INTO plain, keyed
      FROM (SELECT j, j->>'key' AS k FROM json_array_elements(jobs) AS j) AS e;
    IF plain IS NOT NULL THEN
        fresh := rota.insert_plain(plain, at);
        -- A claim that moved one of these ids away while the insert waited for it shows only now.
        SELECT array_agg(s.id), array_agg(s.state) INTO there, states
          FROM rota.states(ARRAY(SELECT (j->>'id')::uuid FROM json_array_elements(plain) AS j), again) AS s
         WHERE s.state <> 'queued' OR NOT s.id = ANY (coalesce(fresh, '{}'));
        IF there && fresh THEN
            DELETE FROM rota.queued WHERE id = ANY (there) AND id = ANY (fresh);
        END IF;
        RETURN QUERY
            SELECT e.ord, e.id,
                   CASE WHEN array_position(there, e.id) IS NULL AND e.nth = 1 THEN 'created' ELSE 'existing' END,
                   coalesce(states[array_position(there, e.id)], 'queued')
              FROM (SELECT o AS ord, (j->>'id')::uuid AS id, j->>'key' AS k,
                           row_number() OVER (PARTITION BY j->>'id' ORDER BY o) AS nth
                      FROM json_array_elements(jobs) WITH ORDINALITY AS x(j, o)
                     WHERE j->>'key' IS NULL) AS e;
    END IF;
    IF keyed THEN
        -- in the order of their keys, so that two callers never wait for each other
        FOR one IN SELECT o, j FROM json_array_elements(jobs) WITH ORDINALITY AS x(j, o)
                    WHERE j->>'key' IS NOT NULL ORDER BY j->>'tenant', j->>'key', o LOOP
            SELECT * INTO told FROM rota.insert_keyed(one.j, at, again);
            RETURN QUERY SELECT one.o, told.id, told.outcome, told.state;
        END LOOP;
    END IF;
    IF wake THEN
        PERFORM pg_notify('rota_wake', queue)
           FROM (SELECT DISTINCT coalesce(j->>'queue', 'default') AS queue FROM json_array_elements(jobs) AS j) AS q;
    END IF;
END
$$;

-- For SQL users: the job exists if and only if the transaction commits.
CREATE FUNCTION rota.enqueue(
    task text, payload json DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 0,
    tenant text DEFAULT 'default', run_at timestamptz DEFAULT NULL, key text DEFAULT NULL,
    on_conflict text DEFAULT 'return', max_attempts integer DEFAULT 3, timeout double precision DEFAULT NULL,
    auto_remove boolean DEFAULT false, tags text[] DEFAULT '{}')
RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    told record;
BEGIN
    IF on_conflict NOT IN ('return', 'raise', 'replace') THEN
        RAISE EXCEPTION 'on_conflict is %, but must be return, raise or replace', on_conflict;
    END IF;
    IF json_typeof(payload) <> 'object' THEN
        RAISE EXCEPTION 'the payload of a job is a JSON object, not %', json_typeof(payload);
    END IF;
    SELECT * INTO told FROM rota.insert_jobs(json_build_array(json_build_object(
        'id', rota.id_at(clock_timestamp()), 'task', task, 'payload_json', payload::text, 'queue', queue,
        'tenant', tenant, 'priority', priority, 'run_at', run_at, 'max_attempts', max_attempts,
        'timeout', timeout, 'key', key, 'on_conflict', on_conflict, 'auto_remove', auto_remove,
        'tags', tags, 'origin', 'sql')), NULL, false, true);
    IF told.outcome = 'refused' THEN
        RAISE unique_violation USING MESSAGE = format('job %s already holds the key %L of tenant %L', told.id, key, tenant);
    END IF;
    RETURN told.id;
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (2, '0002_insert');
