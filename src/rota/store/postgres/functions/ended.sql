-- What follows the end of a job.

-- Add to the tally, in one order everywhere so that two transactions never wait for each other.
CREATE FUNCTION rota.count_ended(queues text[], tasks text[], states text[], minutes timestamptz[], step integer)
RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO rota.tally AS t (minute, queue, task, state, slot, n)
    SELECT date_trunc('minute', m), q, k, s, {tally slot}, step * count(*)
      FROM unnest(queues, tasks, states, minutes) AS e(q, k, s, m)
     GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (minute, queue, task, state, slot) DO UPDATE SET n = t.n + excluded.n;
END
$$;

-- Notify those who wait for one of these jobs.
CREATE FUNCTION rota.notify_ended(ids uuid[]) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM rota.waiters) THEN
        PERFORM pg_notify('rota_done', w.id::text) FROM rota.waiters AS w WHERE w.id = ANY (ids);
        DELETE FROM rota.waiters AS w WHERE w.id = ANY (ids);
    END IF;
END
$$;

-- What is kept of a job beside its own row.
CREATE FUNCTION rota.delete_details(ids uuid[]) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
AS $$
    DELETE FROM rota.attempts WHERE job = ANY (ids);
    DELETE FROM rota.payloads WHERE job = ANY (ids);
$$;
