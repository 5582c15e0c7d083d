-- The line of due jobs: who stands aside, and how many stand before one.

-- Due jobs of paused tenants, out of the way of claims: see rota.set_aside.
CREATE INDEX queued_aside ON rota.queued (tenant, queue, rank, run_at, id) WHERE due IS NULL;

-- Jobs of paused tenants at the front of the lanes leave the index of due jobs, so that a tenant with a
-- million of them is passed once, and not with every claim. Looks no further than a claim of lim jobs
-- does; the more it finds the further, up to some thousands of jobs for one claim to move.
CREATE FUNCTION rota.set_aside(lanes text[], tenants text[], lim integer) RETURNS void
LANGUAGE plpgsql AS $$
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

-- The first jobs of each tenant that is paused no longer come back, as many as a claim of lim jobs can
-- take. Nobody aside: one probe.
CREATE FUNCTION rota.bring_back(queues text[], exclude text[], paused text[], lim integer) RETURNS void
LANGUAGE plpgsql AS $$
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

-- How many due jobs of the queue a claim would take before this place, at most lim.
CREATE FUNCTION rota.ahead(queue text, rank integer, run_at timestamptz, id uuid, lim integer) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT FROM rota.queued AS q
             WHERE q.due AND q.queue = ahead.queue AND (q.rank, q.run_at, q.id) < (ahead.rank, ahead.run_at, ahead.id)
             ORDER BY q.rank, q.run_at, q.id LIMIT lim) AS l);
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (10, '0010_lines');
