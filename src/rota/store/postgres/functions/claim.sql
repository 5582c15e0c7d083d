-- Claims: which jobs a worker gets. How queues share a claim is decided in core/jobs/admission.py; a test
-- holds rota.claim to it.

-- Jobs whose time has come join the due ones; when the next will. Nothing to do costs one probe.
CREATE FUNCTION rota.promote(now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    soonest timestamptz;
BEGIN
    SELECT run_at INTO soonest FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    IF soonest <= now THEN
        UPDATE rota.queued SET due = true WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM rota.queued WHERE NOT due AND run_at <= now ORDER BY run_at LIMIT 1000
               FOR UPDATE SKIP LOCKED));
        SELECT run_at INTO soonest FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    END IF;
    RETURN soonest;
END
$$;

-- The queues to claim from. Without a list: those with due jobs, one index probe each.
CREATE FUNCTION rota.lanes(queues text[], exclude text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF queues IS NOT NULL THEN
        RETURN ARRAY(SELECT DISTINCT q FROM unnest(queues) AS q WHERE NOT q = ANY (exclude));
    END IF;
    RETURN ARRAY(
        WITH RECURSIVE lane(queue) AS (
            (SELECT queue FROM rota.queued WHERE due ORDER BY queue LIMIT 1)
            UNION ALL
            SELECT (SELECT q.queue FROM rota.queued AS q WHERE q.due AND q.queue > lane.queue
                     ORDER BY q.queue LIMIT 1)
              FROM lane WHERE lane.queue IS NOT NULL)
        SELECT queue FROM lane WHERE queue IS NOT NULL AND NOT queue = ANY (exclude));
END
$$;

-- Jobs of paused tenants at the front of the queues leave the index of due jobs, so that a tenant with a
-- million of them is passed once, and not with every claim. It reads no further than a claim of lim jobs
-- does; the more it finds the further, up to some thousands of jobs for one claim to move.
CREATE FUNCTION rota.park(lanes text[], tenants text[], lim integer) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    most CONSTANT integer := 5000;
    reach integer := lim / greatest(cardinality(lanes), 1) + 1;
    moved integer;
BEGIN
    LOOP
        UPDATE rota.queued SET due = NULL WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM rota.queued
             WHERE due AND tenant = ANY (tenants) AND ctid = ANY (ARRAY(
                   SELECT front.ctid FROM unnest(lanes) AS l(queue), LATERAL (
                       SELECT q.ctid, q.tenant FROM rota.queued AS q WHERE q.due AND q.queue = l.queue
                        ORDER BY q.rank, q.run_at, q.id LIMIT reach) AS front
                    WHERE front.tenant = ANY (tenants)))
               FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS moved = ROW_COUNT;
        EXIT WHEN moved = 0 OR reach * cardinality(lanes) > most;
        reach := reach * 4;
    END LOOP;
END
$$;

-- The first jobs of each tenant that is no longer paused come back, as many as a claim of lim jobs can
-- take. Nothing parked: one probe.
CREATE FUNCTION rota.unpark(queues text[], exclude text[], paused text[], lim integer) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM FROM rota.queued WHERE due IS NULL ORDER BY tenant, queue LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE rota.queued SET due = true WHERE ctid = ANY (ARRAY(
        WITH RECURSIVE lane(tenant, queue) AS (  -- one index probe each
            (SELECT tenant, queue FROM rota.queued WHERE due IS NULL ORDER BY tenant, queue LIMIT 1)
            UNION ALL
            SELECT beyond.* FROM lane, LATERAL (
                SELECT q.tenant, q.queue FROM rota.queued AS q
                 WHERE q.due IS NULL AND (q.tenant, q.queue) > (lane.tenant, lane.queue)
                 ORDER BY q.tenant, q.queue LIMIT 1) AS beyond)
        SELECT f.place FROM lane, LATERAL (
            SELECT q.ctid AS place FROM rota.queued AS q
             WHERE q.due IS NULL AND q.tenant = lane.tenant AND q.queue = lane.queue
             ORDER BY q.rank, q.run_at, q.id LIMIT lim FOR UPDATE SKIP LOCKED) AS f
         WHERE NOT lane.tenant = ANY (coalesce(paused, '{}')) AND NOT lane.queue = ANY (exclude)
           AND (queues IS NULL OR lane.queue = ANY (queues))));
END
$$;

-- Claim at most lim jobs. The first row says when the next job will be due, each other one is a job.
-- queues, tasks, exclude_tenants: NULL for any, any, none.
-- since: where the caller's last claim ended in each queue, as [{queue, rank, run_at, id}]. A claim that
-- starts there does not read the entries of jobs long gone at the front of the index. More urgent jobs are
-- still seen; and if it does not find enough, the claim starts from the front as well.
CREATE FUNCTION rota.claim(
    worker text, lim integer, lease_until timestamptz, queues text[], exclude text[], tasks text[],
    exclude_tenants text[], since json, now timestamptz)
RETURNS TABLE (
    next_due_at timestamptz, run_at text, created_at text, payload json,
    {claimed types})
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    first CONSTANT integer := -2147483648;
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    lane text[];  -- queues that may still hold a job to claim, the most urgent first
    head integer[];  -- the best rank of each
    -- the place in each up to which it has been read: (rank, run_at, id)
    seen_rank integer[];
    seen_at timestamptz[];
    seen_id uuid[];
    sharing integer;  -- how many lanes share the best rank
    top bigint;  -- claim ranks before this one
    places tid[];
    givers bigint[];
    wanted integer := lim;
    asked integer;  -- what was wanted in this round
    from_front boolean := false;
BEGIN
    next_due_at := rota.promote(now);
    RETURN NEXT;
    IF wanted > 0 AND since IS NOT NULL THEN
        SELECT array_agg(c.queue), array_agg(CASE WHEN u.urgent THEN first ELSE c.rank END),
               array_agg(c.run_at), array_agg(c.id)
          INTO lane, seen_rank, seen_at, seen_id
          FROM json_to_recordset(since) AS c(queue text, rank integer, run_at timestamptz, id uuid), LATERAL (
               SELECT EXISTS (SELECT FROM rota.queued AS q
                               WHERE q.due AND q.queue = c.queue AND q.rank < c.rank) AS urgent) AS u;
    END IF;
    WHILE wanted > 0 LOOP
        IF lane IS NULL THEN
            EXIT WHEN from_front;
            from_front := true;
            PERFORM rota.unpark(queues, exclude, exclude_tenants, lim);
            lane := rota.lanes(queues, exclude);
            IF exclude_tenants IS NOT NULL THEN
                PERFORM rota.park(lane, exclude_tenants, lim);
            END IF;
            seen_rank := array_fill(first, ARRAY[cardinality(lane)]);
            seen_at := array_fill('-infinity'::timestamptz, ARRAY[cardinality(lane)]);
            seen_id := array_fill(last_id, ARRAY[cardinality(lane)]);
        END IF;
        IF cardinality(lane) = 1 THEN
            sharing := 1;  -- a single queue: it may contribute all it has
            top := 2147483648;
        ELSE
            SELECT array_agg(l.queue ORDER BY h.rank, h.run_at, h.id),
                   array_agg(h.rank ORDER BY h.rank, h.run_at, h.id),
                   array_agg(l.rank ORDER BY h.rank, h.run_at, h.id),
                   array_agg(l.run_at ORDER BY h.rank, h.run_at, h.id),
                   array_agg(l.id ORDER BY h.rank, h.run_at, h.id)
              INTO lane, head, seen_rank, seen_at, seen_id
              FROM unnest(lane, seen_rank, seen_at, seen_id) AS l(queue, rank, run_at, id), LATERAL (
                   SELECT q.rank, q.run_at, q.id FROM rota.queued AS q
                    WHERE q.due AND q.queue = l.queue AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                      AND (tasks IS NULL OR q.task = ANY (tasks))
                      AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                    ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS h;
            CONTINUE WHEN lane IS NULL;
            SELECT count(*) INTO sharing FROM unnest(head) AS r WHERE r = head[1];
            top := CASE WHEN sharing > 1 THEN head[1]::bigint + 1 ELSE coalesce(head[2], 2147483648) END;
        END IF;
        -- from all that share at once: a thousand queues cost one statement, as one does
        SELECT array_agg(p.place), array_agg(p.ord) INTO places, givers
          FROM (SELECT f.place, l.ord
                  FROM unnest(lane[1:sharing], seen_rank[1:sharing], seen_at[1:sharing], seen_id[1:sharing])
                       WITH ORDINALITY AS l(queue, rank, run_at, id, ord), LATERAL (
                       SELECT q.ctid AS place FROM rota.queued AS q
                        WHERE q.due AND q.queue = l.queue AND q.rank < top
                          AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                          AND (tasks IS NULL OR q.task = ANY (tasks))
                          AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                        ORDER BY q.rank, q.run_at, q.id
                        LIMIT wanted / sharing + (l.ord <= wanted % sharing)::integer  -- an even share
                          FOR UPDATE SKIP LOCKED) AS f) AS p;
        IF places IS NOT NULL THEN
            RETURN QUERY
            WITH picked AS (
                DELETE FROM rota.queued WHERE ctid = ANY (places) RETURNING *
            )
            INSERT INTO rota.running AS r (
                {carried except lease_token, attempt, started_at},
                lease_token, attempt, started_at, worker, lease_until, cancel_requested)
            SELECT {carried of p except lease_token, attempt, started_at},
                   p.lease_token + 1, p.attempt + 1, now, claim.worker, claim.lease_until, p.cancel_requested
              FROM picked AS p
            RETURNING NULL::timestamptz, r.run_at::text, r.created_at::text,
                      coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)),
                      {claimed of r};
        END IF;
        asked := wanted;
        wanted := wanted - coalesce(cardinality(places), 0);
        IF wanted > 0 AND cardinality(lane) = 1 THEN
            lane := NULL;
        ELSIF wanted > 0 THEN
            -- a lane that gave less than its share has nothing more to give up to here
            SELECT array_agg(CASE WHEN kept THEN rank ELSE (top - 1)::integer END ORDER BY ord),
                   array_agg(CASE WHEN kept THEN run_at ELSE 'infinity' END ORDER BY ord),
                   array_agg(CASE WHEN kept THEN id ELSE last_id END ORDER BY ord)
              INTO seen_rank, seen_at, seen_id
              FROM (SELECT l.*, l.ord > sharing
                           OR coalesce(g.n, 0) >= asked / sharing + (l.ord <= asked % sharing)::integer AS kept
                      FROM unnest(seen_rank, seen_at, seen_id) WITH ORDINALITY AS l(rank, run_at, id, ord)
                      LEFT JOIN (SELECT o, count(*) AS n FROM unnest(givers) AS o GROUP BY o) AS g ON g.o = l.ord)
                   AS s;
        END IF;
    END LOOP;
END
$$;
