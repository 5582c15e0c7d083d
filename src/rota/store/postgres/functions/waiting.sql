-- How many jobs wait, by tenant.

-- Of each of these tenants, but not of the default one, whose jobs may be in no index by tenant: up to most. The line
-- has an index by segment, queue, rank and tenant: one probe finds each three that there are, and one each the jobs in it.
CREATE FUNCTION rota.count_waiting(names text[], most bigint) RETURNS TABLE (tenant text, n bigint)
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE step(segment, queue, rank) AS (
        (SELECT q.segment, q.queue, q.rank FROM rota.queued AS q WHERE q.due AND q.lane IS NOT NULL
          ORDER BY q.segment, q.queue, q.rank LIMIT 1)
        UNION ALL
        SELECT following.* FROM step AS s, LATERAL (
            SELECT q.segment, q.queue, q.rank FROM rota.queued AS q
             WHERE q.due AND q.lane IS NOT NULL AND (q.segment, q.queue, q.rank) > (s.segment, s.queue, s.rank)
             ORDER BY q.segment, q.queue, q.rank LIMIT 1) AS following
    ), strand AS MATERIALIZED (
        SELECT * FROM step
    )
    SELECT u.name, (
        SELECT count(*) FROM (
            SELECT FROM rota.queued AS q WHERE q.due IS NOT true AND q.tenant = u.name AND q.tenant <> 'default'
            UNION ALL
            SELECT FROM strand AS s, LATERAL (
                SELECT FROM rota.queued AS q
                 WHERE q.due AND q.lane IS NOT NULL AND q.segment = s.segment AND q.queue = s.queue AND q.rank = s.rank
                   AND q.tenant >= u.name AND q.tenant <= u.name ORDER BY q.tenant OFFSET 0) AS found  -- see shares.sql
            LIMIT most) AS w)
      FROM unnest(names) AS u(name) WHERE u.name <> 'default';
END
$$;
