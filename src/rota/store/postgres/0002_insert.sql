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

-- Where the given jobs are; those that ended only if asked for. One statement, hence one snapshot:
-- a job that is moving between tables is seen in exactly one of them.
CREATE FUNCTION rota.states(ids uuid[], ended boolean) RETURNS TABLE (id uuid, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    since timestamptz := 'infinity';
BEGIN
    IF ended THEN
        -- no job ends before it was made: older partitions need no look (a day for crooked clocks)
        SELECT min(rota.born_at(i)) - interval '1 day' INTO since FROM unnest(ids) AS i;
    END IF;
    RETURN QUERY
        SELECT q.id, 'queued' FROM rota.queued AS q WHERE q.id = ANY (ids)
        UNION ALL SELECT r.id, 'running' FROM rota.running AS r WHERE r.id = ANY (ids)
        UNION ALL SELECT d.id, d.state::text FROM rota.done AS d WHERE d.id = ANY (ids) AND d.finished_at >= since;
END
$$;

-- The jobs give up their keys; those without one are passed over.
CREATE FUNCTION rota.free_keys(tenants text[], freed text[], holders uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- OFFSET 0 keeps the planner from joining the other way round: a look through all keys per job
    DELETE FROM rota.keys WHERE ctid = ANY (ARRAY(
        SELECT held.ctid FROM unnest(tenants, freed, holders) AS g(tenant, key, job), LATERAL (
            SELECT k.ctid FROM rota.keys AS k
             WHERE k.tenant = g.tenant AND k.key = g.key AND k.job = g.job OFFSET 0) AS held
         WHERE g.key IS NOT NULL));
END
$$;

-- Store jobs without regard to their keys. Answers only for those that were not simply created.
-- again: an id that has ended already counts as stored. wake: tell the workers at commit.
CREATE FUNCTION rota.insert_plain(jobs json, now timestamptz, again boolean, wake boolean)
RETURNS TABLE (ord bigint, id uuid, outcome text, state text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    at CONSTANT timestamptz := coalesce(now, clock_timestamp());
    wanted integer;
    fresh uuid[];
    stale uuid[];
BEGIN
    WITH given AS MATERIALIZED (
        SELECT * FROM json_to_recordset(jobs) AS j(
            id uuid, task text, payload_json text, queue text, tenant text, priority integer, run_at timestamptz,
            max_attempts integer, timeout double precision, backoff json, key text, auto_remove boolean,
            tags text[], parent uuid, origin text, schedule text, scheduled_for timestamptz)
    ), stored AS (
        INSERT INTO rota.queued AS q (
            id, created_at, run_at, rank, max_attempts, auto_remove, tenant, queue, task, origin, payload, timeout,
            scheduled_for, schedule, key, tags, parent, backoff, due)
        SELECT g.id, at, coalesce(g.run_at, at), -coalesce(g.priority, 0), coalesce(g.max_attempts, 3),
               coalesce(g.auto_remove, false), coalesce(g.tenant, 'default'), coalesce(g.queue, 'default'), g.task,
               coalesce(g.origin, 'api'), rota.small(coalesce(g.payload_json, '{}')), g.timeout, g.scheduled_for,
               g.schedule, g.key, nullif(g.tags, '{}'), g.parent, g.backoff, coalesce(g.run_at, at) <= at
          FROM given AS g
        ON CONFLICT DO NOTHING
        RETURNING q.id, q.payload IS NULL AS is_large
    ), apart AS (
        INSERT INTO rota.payloads (job, body)
        SELECT g.id, g.payload_json::json FROM given AS g JOIN stored AS s ON s.id = g.id WHERE s.is_large
        ON CONFLICT DO NOTHING
    )
    SELECT (SELECT count(*) FROM given), array_agg(s.id) INTO wanted, fresh FROM stored AS s;
    -- A claim that moved one of these ids away while the insert waited for it shows only now.
    SELECT array_agg(r.id) INTO stale FROM rota.running AS r WHERE r.id = ANY (fresh);
    IF again THEN
        stale := stale || ARRAY(SELECT s.id FROM rota.states(fresh, true) AS s WHERE s.state <> 'queued');
    END IF;
    IF stale <> '{}' THEN
        DELETE FROM rota.queued WHERE id = ANY (stale);
        fresh := ARRAY(SELECT f FROM unnest(fresh) AS f WHERE NOT f = ANY (stale));
    END IF;
    IF wanted > coalesce(cardinality(fresh), 0) THEN
        RETURN QUERY
            WITH given AS MATERIALIZED (
                SELECT e.ord, e.id, row_number() OVER (PARTITION BY e.id ORDER BY e.ord) AS nth
                  FROM (SELECT o AS ord, (j->>'id')::uuid AS id
                          FROM json_array_elements(jobs) WITH ORDINALITY AS x(j, o)) AS e
            ), found AS MATERIALIZED (
                SELECT DISTINCT ON (s.id) s.id, s.state FROM rota.states(ARRAY(SELECT g.id FROM given AS g), again) AS s
            )
            SELECT g.ord, g.id, 'existing', coalesce(f.state, 'queued')
              FROM given AS g LEFT JOIN found AS f ON f.id = g.id
             WHERE g.nth > 1 OR NOT g.id = ANY (coalesce(fresh, '{}'));
    END IF;
    IF wake THEN
        PERFORM pg_notify('rota_wake', q.queue)
           FROM (SELECT DISTINCT coalesce(j->>'queue', 'default') AS queue FROM json_array_elements(jobs) AS j) AS q;
    END IF;
END
$$;

-- Store jobs that differ in nothing but id and payload: all of them, or none and a unique_violation.
CREATE FUNCTION rota.insert_alike(
    ids uuid[], payloads json[], created_at timestamptz, run_at timestamptz, rank integer, max_attempts integer,
    auto_remove boolean, tenant text, queue text, task text, origin text, timeout double precision,
    scheduled_for timestamptz, schedule text, tags text[], parent uuid, backoff json, due boolean, wake boolean)
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO rota.queued (
        id, payload, created_at, run_at, rank, max_attempts, auto_remove, tenant, queue, task, origin, timeout,
        scheduled_for, schedule, tags, parent, backoff, due)
    SELECT unnest(ids), unnest(payloads), created_at, run_at, rank, max_attempts, auto_remove, tenant, queue, task,
           origin, timeout, scheduled_for, schedule, tags, parent, backoff, due;
    -- A claim that moved one of these ids away while the insert waited for it shows only now.
    IF EXISTS (SELECT FROM rota.running AS r WHERE r.id = ANY (ids)) THEN
        RAISE unique_violation;
    END IF;
    IF wake THEN
        PERFORM pg_notify('rota_wake', queue);
    END IF;
END
$$;

-- What becomes of a job whose key another job holds; NULL: nobody holds it any more.
CREATE FUNCTION rota.meet_holder(job json, now timestamptz, again boolean, OUT id uuid, OUT outcome text, OUT state text)
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
    IF again THEN
        SELECT s.id, 'existing', s.state INTO id, outcome, state FROM rota.states(ARRAY[j.id], true) AS s;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    SELECT k.job INTO holder FROM rota.keys AS k WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key;
    IF j.on_conflict = 'replace' AND holder <> j.id THEN
        UPDATE rota.queued SET
            task = j.task, payload = rota.small(j.payload_json), queue = coalesce(j.queue, 'default'),
            rank = -coalesce(j.priority, 0), run_at = coalesce(j.run_at, now),
            due = coalesce(j.run_at, now) <= now, max_attempts = coalesce(j.max_attempts, 3),
            timeout = j.timeout, backoff = j.backoff, auto_remove = coalesce(j.auto_remove, false),
            tags = nullif(j.tags, '{}'), parent = j.parent, origin = coalesce(j.origin, 'api'), attempt = 0,
            error = NULL
         WHERE id = holder
        RETURNING holder, 'replaced', 'queued' INTO id, outcome, state;
        IF FOUND THEN
            DELETE FROM rota.payloads WHERE job = holder;
            INSERT INTO rota.payloads (job, body)
            SELECT holder, j.payload_json::json WHERE rota.small(j.payload_json) IS NULL;
            RETURN;
        END IF;
    END IF;
    SELECT s.id, s.state INTO id, state FROM rota.states(ARRAY[holder], false) AS s;
    IF FOUND THEN
        outcome := CASE
            WHEN holder = j.id OR j.on_conflict = 'return' OR j.on_conflict IS NULL THEN 'existing'
            -- it came back to the queue this moment: look again
            WHEN j.on_conflict = 'replace' AND state = 'queued' THEN NULL
            ELSE 'refused' END;
    ELSE
        -- the holder has ended, and freed the key; unless its row was left behind by hand
        DELETE FROM rota.keys AS k
         WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key AND k.job = holder;
    END IF;
END
$$;

-- Store jobs, with or without keys: whoever takes the row in rota.keys wins.
-- Answers only for those that were not simply created. now = NULL: the server's time.
CREATE FUNCTION rota.insert_jobs(jobs json, now timestamptz, again boolean, wake boolean)
RETURNS TABLE (ord bigint, id uuid, outcome text, state text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    at CONSTANT timestamptz := coalesce(now, clock_timestamp());
    winners json;
    places bigint[];
    losers json[];
    lost bigint[];
    ended uuid[];
    one record;
BEGIN
    -- in the order of their keys, so that two callers never wait for each other
    WITH given AS MATERIALIZED (
        SELECT o, j, (j->>'id')::uuid AS id, coalesce(j->>'tenant', 'default') AS tenant, j->>'key' AS key
          FROM json_array_elements(jobs) WITH ORDINALITY AS x(j, o)
    ), taken AS (
        INSERT INTO rota.keys AS k (tenant, key, job)
        SELECT tenant, key, id FROM given WHERE key IS NOT NULL ORDER BY tenant COLLATE "C", key COLLATE "C", o
        ON CONFLICT DO NOTHING
        RETURNING k.job, k.tenant, k.key
    ), ranked AS (
        SELECT g.o, g.j, g.tenant, g.key,
               g.key IS NULL OR (t.job IS NOT NULL AND row_number() OVER (PARTITION BY g.id, g.key ORDER BY g.o) = 1) AS won
          FROM given AS g LEFT JOIN taken AS t ON t.job = g.id AND t.tenant = g.tenant AND t.key = g.key
    )
    SELECT json_agg(j ORDER BY o) FILTER (WHERE won), array_agg(o ORDER BY o) FILTER (WHERE won),
           array_agg(j ORDER BY tenant COLLATE "C", key COLLATE "C", o) FILTER (WHERE NOT won),
           array_agg(o ORDER BY tenant COLLATE "C", key COLLATE "C", o) FILTER (WHERE NOT won)
      INTO winners, places, losers, lost FROM ranked;
    IF winners IS NOT NULL THEN
        FOR one IN SELECT * FROM rota.insert_plain(winners, at, again, false) LOOP
            ended := ended || CASE WHEN one.state NOT IN ('queued', 'running') THEN one.id END;
            RETURN QUERY SELECT places[one.ord], one.id, one.outcome, one.state;
        END LOOP;
    END IF;
    IF ended IS NOT NULL THEN
        PERFORM rota.free_keys(array_agg(coalesce(j->>'tenant', 'default')), array_agg(j->>'key'),
                               array_agg((j->>'id')::uuid))
           FROM json_array_elements(winners) AS j WHERE (j->>'id')::uuid = ANY (ended);
    END IF;
    FOR i IN 1..coalesce(cardinality(lost), 0) LOOP
        SELECT * INTO one FROM rota.meet_holder(losers[i], at, again);
        IF one.outcome IS NULL THEN
            SELECT * INTO one FROM rota.insert_jobs(json_build_array(losers[i]), at, again, false);
        END IF;
        IF one.outcome IS NOT NULL THEN
            RETURN QUERY SELECT lost[i], one.id, one.outcome, one.state;
        END IF;
    END LOOP;
    IF wake THEN
        PERFORM pg_notify('rota_wake', q.queue)
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
    made CONSTANT uuid := rota.id_at(clock_timestamp());
    told record;
BEGIN
    IF on_conflict NOT IN ('return', 'raise', 'replace') THEN
        RAISE EXCEPTION 'on_conflict is %, but must be return, raise or replace', on_conflict;
    END IF;
    IF json_typeof(payload) <> 'object' THEN
        RAISE EXCEPTION 'the payload of a job is a JSON object, not %', json_typeof(payload);
    END IF;
    SELECT * INTO told FROM rota.insert_jobs(json_build_array(json_build_object(
        'id', made, 'task', task, 'payload_json', payload::text, 'queue', queue,
        'tenant', tenant, 'priority', priority, 'run_at', run_at, 'max_attempts', max_attempts,
        'timeout', timeout, 'key', key, 'on_conflict', on_conflict, 'auto_remove', auto_remove,
        'tags', tags, 'origin', 'sql')), NULL, false, true);
    IF told.outcome = 'refused' THEN
        RAISE unique_violation USING MESSAGE = format('job %s already holds the key %L of tenant %L', told.id, key, tenant);
    END IF;
    RETURN coalesce(told.id, made);
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (2, '0002_insert');
