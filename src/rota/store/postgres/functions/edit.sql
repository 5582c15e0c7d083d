-- An operator's edits, each on the given jobs and only while they are in one of the given states.
-- Returns the jobs that were changed.

-- expired_by: only jobs that expire by then; NULL: all.
CREATE FUNCTION rota.cancel_jobs(
    ids uuid[], states text[], fault json, expired_by timestamptz, now timestamptz) RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    ended uuid[] := '{}';
    asked uuid[] := '{}';
    part uuid[];
    queues text[];
    tasks text[];
    part_tenants text[];
    part_names text[];
    run_tenants text[] := '{}';
    run_names text[] := '{}';
BEGIN
    -- Twice, each time with a snapshot of its own: a job may move between the tables meanwhile.
    FOR pass IN 1..2 LOOP
        IF 'queued' = ANY (states) THEN
            WITH taken AS (
                DELETE FROM rota.queued WHERE id = ANY (ids) AND (expired_by IS NULL OR expires_at <= expired_by)
                RETURNING *
            ), stored AS (
                INSERT INTO rota.done (
                    {carried except error}, error, state, finished_at)
                SELECT {carried except error},
                       coalesce(fault, error), 'cancelled', now
                  FROM taken
            ), freed AS (
                DELETE FROM rota.keys AS k USING taken AS t
                 WHERE t.key IS NOT NULL AND k.tenant = t.tenant AND k.key = t.key AND k.job = t.id
            )
            SELECT coalesce(array_agg(id), '{}'), array_agg(queue), array_agg(task),
                   array_agg(tenant) FILTER (WHERE schedule IS NOT NULL),
                   array_agg(schedule) FILTER (WHERE schedule IS NOT NULL)
              INTO part, queues, tasks, part_tenants, part_names FROM taken;
            IF part <> '{}' THEN
                ended := ended || part;
                run_tenants := run_tenants || part_tenants;
                run_names := run_names || part_names;
                PERFORM rota.count_ended(queues, tasks, array_fill('cancelled'::text, ARRAY[cardinality(part)]),
                                         array_fill(now, ARRAY[cardinality(part)]), 1);
            END IF;
        END IF;
        IF 'running' = ANY (states) THEN
            WITH requested AS (  -- through the index, hence in the order of ids, as turns and heartbeats
                UPDATE rota.running SET cancel_requested = true, error = coalesce(fault, error)
                 WHERE id = ANY (ids) AND NOT id = ANY (asked)
                RETURNING id)
            SELECT asked || coalesce(array_agg(id), '{}') INTO asked FROM requested;
        END IF;
        EXIT WHEN cardinality(ended || asked) >= cardinality(ids);
    END LOOP;
    IF run_names <> '{}' THEN
        PERFORM rota.count_runs(
            run_tenants, run_names, array_fill('cancelled'::text, ARRAY[cardinality(run_names)]), NULL,
            array_fill(now, ARRAY[cardinality(run_names)]), 0, 1);
    END IF;
    PERFORM rota.notify_ended(ended);
    RETURN ended || asked;
END
$$;

-- A job whose key has been taken by another one meanwhile stays as it is.
CREATE FUNCTION rota.retry_jobs(ids uuid[], states text[], next_at timestamptz, now timestamptz) RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    free uuid[];
    moved uuid[];
    queues text[];
    tasks text[];
    ended text[];
    minutes timestamptz[];
    run_tenants text[];
    run_names text[];
    run_states text[];
    run_ended timestamptz[];
BEGIN
    WITH wanted AS MATERIALIZED (
        SELECT id, tenant, key FROM rota.done WHERE id = ANY (ids) AND state = ANY (states)
         ORDER BY tenant, key, id FOR UPDATE
    ), taken AS (
        -- one that kept its key after a success has it already
        INSERT INTO rota.keys AS k (tenant, key, job)
        SELECT DISTINCT ON (tenant, key) tenant, key, id FROM wanted AS w WHERE key IS NOT NULL
         ORDER BY tenant, key, EXISTS (SELECT FROM rota.keys AS h WHERE h.tenant = w.tenant AND h.key = w.key AND h.job = w.id) DESC, id
        ON CONFLICT (tenant, key) DO UPDATE SET
            job = excluded.job, kept_until = NULL, kept_s = CASE WHEN k.job = excluded.job THEN k.kept_s END
         WHERE k.kept_until <= now OR (k.kept_until IS NOT NULL AND k.job = excluded.job)
        RETURNING job
    )
    SELECT array_agg(id) INTO free FROM wanted WHERE key IS NULL OR id IN (SELECT job FROM taken);
    WITH taken AS (
        DELETE FROM rota.done WHERE id = ANY (free) RETURNING *
    ), stored AS (
        INSERT INTO rota.queued (
            {carried except run_at, attempt, started_at, progress, crashes, expires_at, snoozes}, run_at, attempt, due, segment,
            lane)
        SELECT {carried except run_at, attempt, started_at, progress, crashes, expires_at, snoozes},
               coalesce(next_at, now), 0, coalesce(next_at, now) <= now, {newest segment}, {line lane}
          FROM taken
        ON CONFLICT DO NOTHING
    ), recorded AS (
        -- a silent success has no record but the job itself, which now starts again
        INSERT INTO rota.attempts (job, lease_token, attempt, outcome, worker, started_at, finished_at, cost_cents)
        SELECT id, lease_token, attempt, 'succeeded', worker, started_at, finished_at, cost_cents
          FROM taken WHERE state = 'succeeded'
        ON CONFLICT DO NOTHING
    )
    SELECT array_agg(id), array_agg(queue), array_agg(task), array_agg(state), array_agg(finished_at),
           array_agg(tenant) FILTER (WHERE schedule IS NOT NULL),
           array_agg(schedule) FILTER (WHERE schedule IS NOT NULL),
           array_agg(state) FILTER (WHERE schedule IS NOT NULL),
           array_agg(finished_at) FILTER (WHERE schedule IS NOT NULL)
      INTO moved, queues, tasks, ended, minutes, run_tenants, run_names, run_states, run_ended FROM taken;
    PERFORM rota.count_ended(queues, tasks, ended, minutes, -1);
    IF run_names IS NOT NULL THEN
        PERFORM rota.count_runs(run_tenants, run_names, run_states, NULL, run_ended, 0, -1);
    END IF;
    RETURN coalesce(moved, '{}');
END
$$;

CREATE FUNCTION rota.move_jobs(
    ids uuid[], next_at timestamptz, new_rank integer, new_queue text, now timestamptz) RETURNS uuid[]
LANGUAGE sql
SET search_path = rota, pg_temp
AS $$
    WITH moved AS (
        UPDATE rota.queued SET run_at = coalesce(next_at, run_at), due = coalesce(next_at, run_at) <= now,
                               rank = coalesce(new_rank, rank), queue = coalesce(new_queue, queue),
                               segment = {newest segment}, lane = {line lane}
         WHERE id = ANY (ids) RETURNING id)
    SELECT coalesce(array_agg(id), '{}') FROM moved
$$;

CREATE FUNCTION rota.delete_jobs(ids uuid[], states text[]) RETURNS uuid[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    waiting uuid[];
    ended uuid[];
    queues text[];
    tasks text[];
    finals text[];
    minutes timestamptz[];
BEGIN
    WITH gone AS (
        DELETE FROM rota.queued WHERE id = ANY (ids) AND 'queued' = ANY (states) RETURNING id, tenant, key
    ), freed AS (
        DELETE FROM rota.keys AS k USING gone AS g
         WHERE g.key IS NOT NULL AND k.tenant = g.tenant AND k.key = g.key AND k.job = g.id
    )
    SELECT array_agg(id) INTO waiting FROM gone;
    WITH gone AS (
        DELETE FROM rota.done WHERE id = ANY (ids) AND state = ANY (states) RETURNING *
    ), freed AS (
        DELETE FROM rota.keys AS k USING gone AS g
         WHERE g.key IS NOT NULL AND k.tenant = g.tenant AND k.key = g.key AND k.job = g.id
    )
    SELECT array_agg(id), array_agg(queue), array_agg(task), array_agg(state), array_agg(finished_at)
      INTO ended, queues, tasks, finals, minutes FROM gone;
    PERFORM rota.count_ended(queues, tasks, finals, minutes, -1);
    PERFORM rota.delete_details(waiting || ended);
    PERFORM rota.notify_ended(waiting);
    RETURN coalesce(waiting || ended, '{}');
END
$$;
