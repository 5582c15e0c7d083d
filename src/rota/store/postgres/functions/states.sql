-- Where jobs are.

-- The state of each given job; finished ones only if asked for. One statement, hence one snapshot: a job
-- that is moving between tables is seen in exactly one of them.
CREATE FUNCTION rota.states(ids uuid[], ended boolean) RETURNS TABLE (id uuid, state text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    since timestamptz := 'infinity';
BEGIN
    IF ended THEN
        -- no job ends before it was made: older partitions need not be read (a day for wrong clocks)
        SELECT min(rota.born_at(i)) - interval '1 day' INTO since FROM unnest(ids) AS i;
    END IF;
    RETURN QUERY
        SELECT q.id, 'queued' FROM rota.queued AS q WHERE q.id = ANY (ids)
        UNION ALL SELECT r.id, 'running' FROM rota.running AS r WHERE r.id = ANY (ids)
        UNION ALL SELECT d.id, d.state::text FROM rota.done AS d WHERE d.id = ANY (ids) AND d.finished_at >= since;
END
$$;

-- How many due jobs of the queue a claim would take before this place, at most lim.
CREATE FUNCTION rota.ahead(queue text, rank integer, run_at timestamptz, id uuid, lim integer) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT FROM rota.list_strands(ARRAY[ahead.queue]) AS s, LATERAL (
                SELECT FROM rota.queued AS q
                 WHERE q.due AND q.segment = s.segment AND q.queue = ahead.queue
                   AND (q.rank, q.run_at, q.id) > (s.rank, s.run_at, s.id)
                   AND (q.rank, q.run_at, q.id) < (ahead.rank, ahead.run_at, ahead.id)
                 LIMIT lim) AS l
             LIMIT lim) AS a);
END
$$;
