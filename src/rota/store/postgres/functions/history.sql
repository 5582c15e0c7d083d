-- History by UTC day: partitions made ahead, whole days dropped, the rest deleted in batches.

-- Make the partition of a day that is still at least a day away: a statement that was planned before the
-- partition was attached does not see it, so no job may end in it yet. False if it exists already, or if
-- another session holds a lock; NULL if the role may not: its jobs then end in the default partition.
CREATE FUNCTION rota.make_day(day timestamptz) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET lock_timeout = '100ms' SET client_min_messages = warning
AS $$
DECLARE
    start CONSTANT timestamptz := date_trunc('day', day AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    stop CONSTANT timestamptz := start + interval '24 hours';
    name CONSTANT text := 'done_' || to_char(start AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
    IF to_regclass('rota.' || name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE rota.%I (LIKE rota.done INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
    -- ATTACH, unlike CREATE TABLE ... PARTITION OF, lets other sessions use rota.done meanwhile
    EXECUTE format('ALTER TABLE rota.done ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)', name, start, stop);
    RETURN true;
EXCEPTION
    -- another session holds a lock or was faster, or a clock far ahead ended a job on that day: the default
    -- partition has it
    WHEN lock_not_available OR duplicate_table OR unique_violation OR check_violation OR deadlock_detected THEN
        RETURN false;
    WHEN insufficient_privilege THEN
        RETURN NULL;
END
$$;

-- Drop a whole day; jobs with a retention of their own go to the default partition first. False if another session is reading it: the next run will do. NULL if the role may not.
CREATE FUNCTION rota.drop_day(part regclass, start timestamptz) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    queues text[];
    tasks text[];
    finals text[];
    minutes timestamptz[];
BEGIN
    EXECUTE format('ALTER TABLE rota.done DETACH PARTITION %s', part);
    EXECUTE format(
        'WITH kept AS (INSERT INTO rota.done SELECT * FROM %s WHERE keep IS NOT NULL'
        '    RETURNING queue, task, state, finished_at)'
        'SELECT array_agg(queue), array_agg(task), array_agg(state), array_agg(finished_at) FROM kept', part)
       INTO queues, tasks, finals, minutes;
    EXECUTE format('DROP TABLE %s', part);
    DELETE FROM rota.tally
     WHERE minute >= start AND minute < start + interval '24 hours' AND state <> 'removed';
    PERFORM rota.count_ended(queues, tasks, finals, minutes, 1);
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
        RETURN false;
    WHEN insufficient_privilege THEN
        RETURN NULL;
END
$$;

-- Delete at most lim jobs of one partition that finished before their state's instant; how many.
CREATE FUNCTION rota.prune_part(part regclass, states text[], befores timestamptz[], lim integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET jit = off
AS $$
DECLARE
    ids uuid[];
    queues text[];
    tasks text[];
    finals text[];
    minutes timestamptz[];
BEGIN
    EXECUTE format(
        'WITH gone AS (DELETE FROM %1$s WHERE ctid = ANY (ARRAY('
        '    SELECT d.ctid FROM %1$s AS d JOIN unnest($1, $2) AS c(state, before)'
        '        ON d.state = c.state AND d.finished_at < c.before AND d.keep IS NULL LIMIT $3 FOR UPDATE OF d SKIP LOCKED))'
        '    RETURNING id, queue, task, state, finished_at)'
        'SELECT array_agg(id), array_agg(queue), array_agg(task), array_agg(state), array_agg(finished_at) FROM gone',
        part)
       INTO ids, queues, tasks, finals, minutes USING states, befores, lim;
    PERFORM rota.count_ended(queues, tasks, finals, minutes, -1);
    PERFORM rota.delete_details(ids);
    RETURN coalesce(cardinality(ids), 0);
END
$$;

-- Delete at most lim jobs whose own retention is over; how many. Few different durations are in use: each is
-- looked up by itself, so that jobs which are kept longer are not read.
CREATE FUNCTION rota.prune_kept(now timestamptz, lim integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    ids uuid[];
    queues text[];
    tasks text[];
    finals text[];
    minutes timestamptz[];
BEGIN
    WITH RECURSIVE spans AS (
        SELECT min(keep) AS keep FROM rota.done WHERE keep IS NOT NULL
        UNION ALL
        SELECT (SELECT min(d.keep) FROM rota.done AS d WHERE d.keep > s.keep) FROM spans AS s WHERE s.keep IS NOT NULL
    ), over AS MATERIALIZED (
        SELECT d.id, d.finished_at FROM spans AS s, LATERAL (
            SELECT k.id, k.finished_at FROM rota.done AS k
             WHERE k.keep = s.keep AND k.finished_at < now - make_interval(secs => s.keep)
             ORDER BY k.finished_at LIMIT lim) AS d
         LIMIT lim
    ), gone AS (
        DELETE FROM rota.done AS d USING over AS o WHERE d.id = o.id AND d.finished_at = o.finished_at
        RETURNING d.id, d.queue, d.task, d.state, d.finished_at
    )
    SELECT array_agg(id), array_agg(queue), array_agg(task), array_agg(state), array_agg(finished_at)
      INTO ids, queues, tasks, finals, minutes FROM gone;
    PERFORM rota.count_ended(queues, tasks, finals, minutes, -1);
    PERFORM rota.delete_details(ids);
    RETURN coalesce(cardinality(ids), 0);
END
$$;

-- Older minutes become hours, so that summing the tally stays cheap.
CREATE FUNCTION rota.fold_tally(now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
SET "TimeZone" = 'UTC'
AS $$
    WITH old AS (
        DELETE FROM rota.tally
         WHERE minute < date_trunc('hour', now) - interval '1 hour'
           AND (slot <> 0 OR minute <> date_trunc('hour', minute) OR n = 0)
        RETURNING *
    )
    INSERT INTO rota.tally AS t (minute, queue, task, state, slot, n)
    SELECT date_trunc('hour', minute), queue, task, state, 0, sum(n) FROM old
     GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0 ORDER BY 1, 2, 3, 4
    ON CONFLICT (minute, queue, task, state, slot) DO UPDATE SET n = t.n + excluded.n
$$;

-- Slots of days that are over become one, so that summing them stays cheap; very old days go.
CREATE FUNCTION rota.fold_runs(now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
SET "TimeZone" = 'UTC'
AS $$
    DELETE FROM rota.run_counts WHERE day < now::date - {run days};
    WITH old AS (
        DELETE FROM rota.run_counts WHERE day < now::date - 1 AND slot <> 0 RETURNING *
    )
    INSERT INTO rota.run_counts AS c
    SELECT tenant, schedule, day, 0, sum(succeeded), sum(failed), sum(cancelled), sum(timed), sum(total_us),
           max(longest_us)
      FROM old GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (tenant, schedule, day, slot) DO UPDATE SET
        succeeded = c.succeeded + excluded.succeeded, failed = c.failed + excluded.failed,
        cancelled = c.cancelled + excluded.cancelled, timed = c.timed + excluded.timed,
        total_us = c.total_us + excluded.total_us, longest_us = greatest(c.longest_us, excluded.longest_us)
$$;

-- Slots of periods that are over become one; hours go after two days, days after 400, months after ten years.
CREATE FUNCTION rota.fold_spending(now timestamptz) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
AS $$
    DELETE FROM rota.spending AS s
     WHERE s.begins < now - CASE s.unit WHEN 'hour' THEN interval '2 days' WHEN 'day' THEN interval '400 days'
                                        ELSE interval '3660 days' END;
    WITH old AS (
        DELETE FROM rota.spending AS s
         WHERE s.slot <> 0
           AND s.begins < now - CASE s.unit WHEN 'hour' THEN interval '3 hours' WHEN 'day' THEN interval '2 days'
                                            ELSE interval '33 days' END
        RETURNING *
    )
    INSERT INTO rota.spending AS s (tenant, unit, begins, slot, amount)
    SELECT tenant, unit, begins, 0, sum(amount) FROM old GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (tenant, unit, begins, slot) DO UPDATE SET amount = s.amount + excluded.amount
$$;
