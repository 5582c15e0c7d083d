-- Leases: kept alive by heartbeats, taken over when they have expired.

-- One heartbeat of a process: renew its leases, write progress, record the worker. Only jobs that the
-- worker holds are touched.
CREATE FUNCTION rota.heartbeat(
    worker text, document json, leases json, notes json, lease_s double precision, now timestamptz,
    OUT lost uuid[], OUT cancel uuid[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    kept uuid[];
    note record;
BEGIN
    IF notes IS NOT NULL THEN
        -- All at once and in order: the notes' jobs may come before those whose lease is renewed.
        PERFORM FROM rota.running AS r
          WHERE r.id = ANY (ARRAY(SELECT l.id FROM json_to_recordset(leases) AS l(id uuid) UNION ALL
                                  SELECT n.id FROM json_to_recordset(notes) AS n(id uuid)))
          ORDER BY r.id FOR UPDATE;
    END IF;
    IF leases IS NOT NULL THEN
        WITH lease AS MATERIALIZED (
            SELECT * FROM json_to_recordset(leases) AS l(id uuid, lease_token bigint)
        ), renewed AS (
            UPDATE rota.running SET lease_until = now + lease_s * interval '1 second'
             WHERE id = ANY (ARRAY(SELECT l.id FROM lease AS l))
               AND worker = heartbeat.worker AND ((id, lease_token) IN (SELECT l.id, l.lease_token FROM lease AS l)) IS TRUE
            RETURNING id
        )
        SELECT array_agg(id) INTO kept FROM renewed;
        lost := ARRAY(SELECT l.id FROM json_to_recordset(leases) AS l(id uuid)
                       WHERE NOT l.id = ANY (coalesce(kept, '{}')));
    END IF;
    FOR note IN SELECT * FROM json_to_recordset(notes) AS n(id uuid, lease_token bigint, progress_json text) ORDER BY id LOOP
        UPDATE rota.running SET progress = note.progress_json::json
         WHERE id = note.id AND lease_token = note.lease_token AND worker = heartbeat.worker;
    END LOOP;
    INSERT INTO rota.documents AS d (kind, key, version, updated_at, body)
    VALUES ('worker', heartbeat.worker, 1, now, document)
    ON CONFLICT (kind, key) DO UPDATE
       SET version = d.version + 1, updated_at = excluded.updated_at, body = excluded.body;
    cancel := ARRAY(SELECT r.id FROM rota.running AS r WHERE r.cancel_requested AND r.worker = heartbeat.worker);
END
$$;

-- Take over jobs whose lease has expired. The rows returned name the worker that lost them.
CREATE FUNCTION rota.reclaim(holder text, lease_s double precision, lim integer, now timestamptz)
RETURNS TABLE ({carried types except payload}, payload json, worker text, lease_until timestamptz, cancel_requested boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    is_large CONSTANT boolean := pg_relation_size('rota.running') > {large running};
    found integer;
BEGIN
    -- Reads the whole table, which holds no more than the jobs that workers run: an index on lease_until
    -- would be paid for by every claim, this only by the one sweep in a few seconds. While an old snapshot
    -- keeps dead rows in it, one sweep in two seconds serves all workers.
    IF is_large AND (SELECT s.swept_at FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1)
                    BETWEEN clock_timestamp() - interval '2 s' AND clock_timestamp() THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH expired AS MATERIALIZED (
        SELECT e.id, e.worker FROM rota.running AS e WHERE e.lease_until <= now ORDER BY e.lease_until LIMIT lim
           FOR UPDATE SKIP LOCKED)
    UPDATE rota.running AS r SET lease_token = r.lease_token + 1, worker = holder,
           lease_until = now + lease_s * interval '1 second'
      FROM expired AS e WHERE r.id = e.id
    RETURNING {carried of r except payload},
              coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)), e.worker,
              r.lease_until, r.cancel_requested;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF is_large AND found < lim THEN
        UPDATE rota.segments SET version = version + 1, swept_at = clock_timestamp()
         WHERE version = (SELECT s.version FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1 FOR UPDATE SKIP LOCKED);
    END IF;
END
$$;
