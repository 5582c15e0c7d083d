-- Idempotency keys: one live job per tenant and key. A job that succeeded may keep its key for a while.

-- The jobs give up their keys; those without one are passed over.
CREATE FUNCTION rota.free_keys(tenants text[], freed text[], holders uuid[]) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    -- OFFSET 0 keeps the planner from joining the other way round, which would read all keys per job
    DELETE FROM rota.keys WHERE ctid = ANY (ARRAY(
        SELECT held.ctid FROM unnest(tenants, freed, holders) AS g(tenant, key, job), LATERAL (
            SELECT k.ctid FROM rota.keys AS k
             WHERE k.tenant = g.tenant AND k.key = g.key AND k.job = g.job OFFSET 0) AS held
         WHERE g.key IS NOT NULL));
END
$$;

-- The jobs have ended: they give up their keys, but for successes that were asked to keep theirs.
CREATE FUNCTION rota.end_keys(
    tenants text[], held text[], holders uuid[], succeeded boolean[], now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    freed tid[];
    kept tid[];
BEGIN
    SELECT array_agg(k.ctid) FILTER (WHERE k.kept_s IS NULL OR NOT g.succeeded),
           array_agg(k.ctid) FILTER (WHERE k.kept_s IS NOT NULL AND g.succeeded)
      INTO freed, kept
      FROM unnest(tenants, held, holders, succeeded) AS g(tenant, key, job, succeeded), LATERAL (
        SELECT x.ctid, x.kept_s FROM rota.keys AS x  -- OFFSET 0: as in rota.free_keys
         WHERE x.tenant = g.tenant AND x.key = g.key AND x.job = g.job OFFSET 0) AS k
     WHERE g.key IS NOT NULL;
    DELETE FROM rota.keys WHERE ctid = ANY (freed);
    IF kept IS NOT NULL THEN
        UPDATE rota.keys SET kept_until = now + kept_s * interval '1 second' WHERE ctid = ANY (kept);
    END IF;
END
$$;

-- What becomes of a job whose key another job holds; NULL if the key is free again.
CREATE FUNCTION rota.resolve_conflict(job json, now timestamptz, again boolean, OUT id uuid, OUT outcome text, OUT state text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    j record;
    holder uuid;
    kept timestamptz;
BEGIN
    SELECT * INTO j FROM json_to_record(job) AS x({new types}, on_conflict text, key_for double precision);
    IF again THEN
        SELECT s.id, 'existing', s.state INTO id, outcome, state FROM rota.states(ARRAY[j.id], true) AS s;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    SELECT k.job, k.kept_until INTO holder, kept FROM rota.keys AS k
     WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key;
    IF kept > now THEN
        id := holder;
        -- retention may have deleted the job, but not its key
        state := coalesce((SELECT s.state FROM rota.states(ARRAY[holder], true) AS s LIMIT 1), 'succeeded');
        outcome := CASE WHEN holder = j.id OR coalesce(j.on_conflict, 'return') = 'return'
                        THEN 'existing' ELSE 'refused' END;
        RETURN;
    END IF;
    IF j.on_conflict = 'replace' AND holder <> j.id THEN
        UPDATE rota.queued AS q SET
            (payload, rank, run_at, due, segment, lane, attempt, error, cancel_requested, crashes, snoozes, progress,
             {options except tenant, key}) =
            (CASE WHEN octet_length(j.payload_json) <= {large} THEN j.payload_json::json END,
             -coalesce(j.priority, 0), coalesce(j.run_at, now),
             coalesce(j.run_at, now) <= now AND ({sees newest} OR coalesce(j.run_at, now) < now),
             {newest segment}, {line lane of q}, 0, NULL, false, NULL, NULL, NULL,
             {options given of j except tenant, key})
         WHERE id = holder
        RETURNING holder, 'replaced', 'queued' INTO id, outcome, state;
        IF FOUND THEN
            UPDATE rota.keys AS k SET kept_s = j.key_for
             WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key AND k.job = holder;
            DELETE FROM rota.payloads WHERE job = holder;
            INSERT INTO rota.payloads (job, body)
            SELECT holder, j.payload_json::json WHERE octet_length(j.payload_json) > {large};
            RETURN;
        END IF;
    END IF;
    SELECT s.id, s.state INTO id, state FROM rota.states(ARRAY[holder], false) AS s;
    IF FOUND THEN
        outcome := CASE
            WHEN holder = j.id OR j.on_conflict = 'return' OR j.on_conflict IS NULL THEN 'existing'
            -- it came back to the queue this moment: try again
            WHEN j.on_conflict = 'replace' AND state = 'queued' THEN NULL
            ELSE 'refused' END;
    ELSE
        -- the holder has ended, and freed the key; unless its row was left behind by hand, or it keeps the key
        -- since this moment
        DELETE FROM rota.keys AS k
         WHERE k.tenant = coalesce(j.tenant, 'default') AND k.key = j.key AND k.job = holder
           AND (k.kept_until IS NULL OR k.kept_until <= now);
    END IF;
END
$$;
