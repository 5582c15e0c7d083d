-- Storing jobs. Every hot function pins its plans: fresh or stale statistics must never turn a probe into a
-- scan, and jit must not be started by the cost of a disabled path.

-- Store jobs without regard to their keys. Answers only for those that were not simply created.
-- again: an id that has ended already counts as stored. wake: notify the workers at commit.
CREATE FUNCTION rota.insert_plain(jobs json, now timestamptz, again boolean, wake boolean)
RETURNS TABLE (ord bigint, id uuid, outcome text, state text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    at CONSTANT timestamptz := coalesce(now, clock_timestamp());
    wanted integer;
    fresh uuid[];
    stale uuid[];
    has_tenants boolean;
BEGIN
    WITH given AS MATERIALIZED (
        SELECT * FROM json_to_recordset(jobs) AS j({new types})
    ), stored AS (
        INSERT INTO rota.queued AS q (
            id, created_at, run_at, rank, payload, due, segment, lane,
            {options})
        SELECT g.id, at, coalesce(g.run_at, at), -coalesce(g.priority, 0),
               CASE WHEN octet_length(g.payload_json) <= {large} THEN g.payload_json::json
                    WHEN g.payload_json IS NULL THEN '{}' END,
               coalesce(g.run_at, at) <= at AND ({sees newest} OR coalesce(g.run_at, at) < at), {newest segment},
               {line lane of g},
               {options given of g}
          FROM given AS g
        ON CONFLICT DO NOTHING
        RETURNING q.id, q.payload IS NULL AS is_large, q.tenant <> 'default' AS has_tenant
    ), apart AS (
        INSERT INTO rota.payloads (job, body)
        SELECT g.id, g.payload_json::json FROM given AS g JOIN stored AS s ON s.id = g.id WHERE s.is_large
        ON CONFLICT DO NOTHING
    )
    SELECT (SELECT count(*) FROM given), array_agg(s.id), bool_or(s.has_tenant)
      INTO wanted, fresh, has_tenants FROM stored AS s;
    IF has_tenants AND NOT {many tenants} THEN
        PERFORM rota.note_tenants();
    END IF;
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
        PERFORM pg_notify('rota_wake', rota.hint_of(q.queue))
           FROM (SELECT DISTINCT coalesce(j->>'queue', 'default') AS queue FROM json_array_elements(jobs) AS j) AS q;
    END IF;
END
$$;

-- Store jobs that differ in nothing but id and payload: all of them, or none and a unique_violation.
CREATE FUNCTION rota.insert_alike(
    ids uuid[], payloads json[], created_at timestamptz, run_at timestamptz, rank integer, due boolean,
    {options types except key}, wake boolean)
RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO rota.queued (
        id, payload, created_at, run_at, rank, due, segment, lane,
        {options except key})
    SELECT unnest(ids), unnest(payloads), created_at, run_at, rank, due, {newest segment},
           {line lane},
           {options except key};
    -- A claim that moved one of these ids away while the insert waited for it shows only now.
    IF EXISTS (SELECT FROM rota.running AS r WHERE r.id = ANY (ids)) THEN
        RAISE unique_violation;
    END IF;
    IF tenant <> 'default' AND NOT {many tenants} THEN
        PERFORM rota.note_tenants();
    END IF;
    IF wake THEN
        PERFORM pg_notify('rota_wake', rota.hint_of(queue));
    END IF;
END
$$;

-- Store jobs, with or without keys: the one that takes the row in rota.keys wins.
-- Answers only for those that were not simply created. now = NULL: the server's time.
CREATE FUNCTION rota.insert_jobs(jobs json, now timestamptz, again boolean, wake boolean)
RETURNS TABLE (ord bigint, id uuid, outcome text, state text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
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
        SELECT o, j, (j->>'id')::uuid AS id, coalesce(j->>'tenant', 'default') AS tenant, j->>'key' AS key,
               (j->>'key_for')::double precision AS kept_s
          FROM json_array_elements(jobs) WITH ORDINALITY AS x(j, o)
    ), taken AS (
        INSERT INTO rota.keys AS k (tenant, key, job, kept_s)
        SELECT tenant, key, id, kept_s FROM given WHERE key IS NOT NULL ORDER BY tenant COLLATE "C", key COLLATE "C", o
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
        SELECT * INTO one FROM rota.resolve_conflict(losers[i], at, again);
        IF one.outcome IS NULL THEN
            SELECT * INTO one FROM rota.insert_jobs(json_build_array(losers[i]), at, again, false);
        END IF;
        IF one.outcome IS NOT NULL THEN
            RETURN QUERY SELECT lost[i], one.id, one.outcome, one.state;
        END IF;
    END LOOP;
    IF wake THEN
        PERFORM pg_notify('rota_wake', rota.hint_of(q.queue))
           FROM (SELECT DISTINCT coalesce(j->>'queue', 'default') AS queue FROM json_array_elements(jobs) AS j) AS q;
    END IF;
END
$$;
