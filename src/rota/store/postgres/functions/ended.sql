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

-- Count runs of schedules, in one order everywhere. step: -1 takes outcomes back, not durations. began: when
-- the task's code did. spread: 0, or 64 for a second count within one transaction, as in rota.succeed.
CREATE FUNCTION rota.count_runs(
    tenants text[], schedules text[], states text[], began timestamptz[], ended timestamptz[], spread integer,
    step integer) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO rota.run_counts AS c (
        tenant, schedule, day, slot, succeeded, failed, cancelled, timed, total_us, longest_us)
    SELECT t, s, (e AT TIME ZONE 'UTC')::date, spread + {tally slot},
           step * count(*) FILTER (WHERE x IN ('succeeded', 'removed')),
           step * count(*) FILTER (WHERE x = 'failed'),
           step * count(*) FILTER (WHERE x = 'cancelled'),
           count(took), coalesce(sum(took), 0), coalesce(max(took), 0)
      FROM unnest(tenants, schedules, states, began, ended) AS r(t, s, x, b, e), LATERAL (
               SELECT CASE WHEN step > 0 AND x <> 'cancelled' AND b IS NOT NULL
                           THEN (greatest(extract(epoch FROM e - b), 0) * 1000000)::bigint END) AS d(took)
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant, schedule, day, slot) DO UPDATE SET
        succeeded = c.succeeded + excluded.succeeded, failed = c.failed + excluded.failed,
        cancelled = c.cancelled + excluded.cancelled, timed = c.timed + excluded.timed,
        total_us = c.total_us + excluded.total_us, longest_us = greatest(c.longest_us, excluded.longest_us);
END
$$;

-- Add to what tenants have spent, in cents, in one order everywhere.
CREATE FUNCTION rota.spend(tenants text[], amounts double precision[], now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO rota.spending AS s (tenant, unit, begins, slot, amount)
    SELECT t, u, date_trunc(u, now, 'UTC'), pg_backend_pid() % 8, sum(a)
      FROM unnest(tenants, amounts) AS p(t, a), unnest(ARRAY['day', 'hour', 'month']) AS u
     GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant, unit, begins, slot) DO UPDATE SET amount = s.amount + excluded.amount;
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
