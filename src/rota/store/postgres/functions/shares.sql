-- Fair shares: within a queue and a rank, tenants share a claim by weight, and what one does not use the others get.
-- core/jobs/admission.py has the same arithmetic.
-- What looks for the jobs of one tenant says so as a range, in the order of tenants, which only the index by tenant has.
-- While statistics know one tenant alone, the planner takes tenant = X for true of all jobs, and walks the whole line.

-- Tenants with jobs in the line of a queue and rank, from one on and round, up to most. One index probe each.
CREATE FUNCTION rota.walk_tenants(segments integer[], queue text, rank integer, from_tenant text, most integer)
RETURNS TABLE (tenant text)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    found integer := 0; n integer;
    after text; last text;
BEGIN
    FOR part IN 1..2 LOOP  -- behind from_tenant, then those up to it
        EXIT WHEN found >= most OR part = 2 AND from_tenant = '';
        after := CASE part WHEN 1 THEN from_tenant ELSE '' END;
        last := CASE part WHEN 1 THEN NULL ELSE from_tenant END;
        RETURN QUERY
        SELECT t.tenant
          FROM (SELECT DISTINCT w.tenant FROM unnest(segments) AS g(segment), LATERAL (
                    WITH RECURSIVE step(tenant, n) AS (
                        SELECT after COLLATE "C", 0
                        UNION ALL
                        SELECT (SELECT q.tenant FROM rota.queued AS q
                                 WHERE q.due AND q.lane IS NOT NULL AND q.segment = g.segment AND q.queue = walk_tenants.queue
                                   AND q.rank = walk_tenants.rank AND q.tenant > s.tenant
                                   AND (last IS NULL OR q.tenant <= last COLLATE "C")
                                 ORDER BY q.tenant LIMIT 1), s.n + 1
                          FROM step AS s WHERE s.tenant IS NOT NULL AND s.n < most - found)
                    SELECT s.tenant FROM step AS s WHERE s.n > 0 AND s.tenant IS NOT NULL) AS w) AS t
         ORDER BY t.tenant LIMIT most - found;
        GET DIAGNOSTICS n = ROW_COUNT;
        found := found + n;
    END LOOP;
END
$$;

-- How many tenants have jobs in the line of a queue and rank, as far as counted, the sum of their weights, and the
-- least of these; NULL if all are the same.
CREATE FUNCTION rota.weigh_tenants(
    segments integer[], queue text, rank integer, most integer, has_weights boolean, OUT n integer, OUT weight double precision,
    OUT lightest double precision)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    SELECT count(*), sum(w.weight), CASE WHEN min(w.weight) < max(w.weight) THEN min(w.weight) END INTO n, weight, lightest
      FROM (SELECT CASE WHEN has_weights THEN rota.weight_of(t.tenant) ELSE 1 END AS weight
              FROM rota.walk_tenants(segments, queue, rank, '', most) AS t) AS w;
END
$$;

CREATE FUNCTION rota.weight_of(tenant text) RETURNS double precision
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
BEGIN
    RETURN coalesce((SELECT t.weight FROM rota.tenants AS t WHERE t.name = tenant AND t.weight > 0 AND t.weight < 'infinity'), 1);
END
$$;

-- What a tenant of weight 1 may have of each queue's share, what the worker has in hand included; how many tenants
-- to look for that the line does not show; how many it shows. js, tenants: the candidates of the line; lightest: the
-- least weight in each queue, NULL where all are the same. in_turns: that one's share is less than a job, see rota.take_turns.
CREATE FUNCTION rota.share_out(
    js integer[], tenants text[], pick integer[], share integer[], shown integer[], waiting integer[], weights double precision[],
    lightest double precision[], holder text[], holding integer[], has_weights boolean, goes_round boolean, names text[],
    rank integer, segment integer)
RETURNS TABLE (j integer, rate double precision, walk bigint, seen bigint, in_turns boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH tenant AS MATERIALIZED (
        SELECT c.j, c.tenant, c.n, CASE WHEN has_weights THEN rota.weight_of(c.tenant) ELSE 1 END AS weight,
               coalesce(h.n, 0) AS held
          FROM (SELECT u.j, u.tenant, count(*) AS n FROM unnest(js, tenants) AS u(j, tenant) GROUP BY 1, 2) AS c
          LEFT JOIN unnest(holder, holding) AS h(tenant, n) ON h.tenant = c.tenant
    ), queue AS MATERIALIZED (
        SELECT t.j, share[t.j] AS share, count(*) AS seen, sum(t.n) AS n, waiting[pick[t.j]] AS waiting,
               (share[t.j] + greatest(sum(t.held), (
                   SELECT sum(h.n) FROM unnest(holder, holding) AS h(tenant, n), LATERAL (
                          SELECT FROM rota.queued AS q
                           WHERE q.due AND q.lane IS NOT NULL AND q.segment = share_out.segment AND q.queue = names[pick[t.j]]
                             AND q.rank = share_out.rank AND q.tenant >= h.tenant AND q.tenant <= h.tenant
                           ORDER BY q.tenant LIMIT 1) AS w
                    WHERE cardinality(holder) <= 64))  -- of more, only those that the line shows
               ) / greatest(weights[pick[t.j]], sum(t.weight)) AS rate,
               share[t.j] / greatest(weights[pick[t.j]], sum(t.weight)) AS fresh_rate  -- without what it has in hand
          FROM tenant AS t GROUP BY t.j
    )
    SELECT p.j::integer, q.rate,
           CASE WHEN q.n < shown[p.j] THEN 0  -- the line has no more
                WHEN q.waiting <= q.seen THEN 1
                -- a sixteenth goes round whatever the line shows; if that is fair, rarely and then more
                WHEN o.over = 0 AND q.share >= {fair claim} THEN CASE WHEN goes_round THEN least(q.waiting - q.seen, q.share) ELSE 0 END
                ELSE least(q.waiting - q.seen, greatest(
                     ceil(o.over / greatest(1, q.fresh_rate)), q.share / 16 + (random() * 16 < q.share % 16)::integer))::bigint END,
           q.seen, coalesce(q.n >= shown[p.j] AND q.share * lightest[pick[p.j]] < weights[pick[p.j]], false)
      FROM generate_subscripts(pick, 1) AS p(j) LEFT JOIN queue AS q ON q.j = p.j
      LEFT JOIN (SELECT t.j, sum(greatest(0, t.n - greatest(
                                  -- in a large claim one job of each is fair, whatever was rounded
                                  CASE WHEN q.share >= {fair claim} THEN 1 ELSE 0 END, ceil(q.rate * t.weight) - t.held))) AS over
                   FROM tenant AS t JOIN queue AS q ON q.j = t.j GROUP BY t.j) AS o ON o.j = p.j;
END
$$;

-- What a tenant of weight 1 may have, once those are known that have jobs in lanes alone, which rota.share_out did not count.
-- rates: as it found them, 0 where tenants take turns. js, tenants, origins: the candidates; 1: from a lane.
CREATE FUNCTION rota.share_with_held(
    rates double precision[], share integer[], js integer[], tenants text[], origins smallint[], has_weights boolean)
RETURNS double precision[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT array_agg(CASE WHEN h.weight IS NULL OR rates[s.j] = 0 THEN rates[s.j]
                              WHEN rates[s.j] IS NULL THEN s.n / h.weight
                              ELSE 1 / (1 / rates[s.j] + h.weight / greatest(s.n, 1)) END ORDER BY s.j)
          FROM unnest(share) WITH ORDINALITY AS s(n, j)
          LEFT JOIN (SELECT t.j, sum(CASE WHEN has_weights THEN rota.weight_of(t.tenant) ELSE 1 END) AS weight
                       FROM (SELECT u.j, u.tenant FROM unnest(js, tenants, origins) AS u(j, tenant, origin)
                              GROUP BY 1, 2 HAVING bool_and(u.origin = 1)) AS t GROUP BY t.j) AS h ON h.j = s.j);
END
$$;

-- Jobs of tenants that the line does not show, from one tenant on and round; the last tenant met, and those whose turn
-- it is whatever the order of arrival, as j:TENANT. Then more jobs of tenants of which it shows less than their share, as many as
-- others are over theirs. rate: see rota.share_out; shown: the tenant of each job in the line, and its place.
CREATE FUNCTION rota.pick_tenants(
    segments integer[], queue text, rank integer, from_tenant text, walk integer, j integer, share integer, rate double precision,
    shown text[], shown_at timestamptz[], shown_id uuid[], known_tasks text[], exclude_tenants text[], holder text[],
    holding integer[], has_weights boolean,
    OUT js integer[], OUT queues text[], OUT places tid[], OUT ids uuid[], OUT ats timestamptz[], OUT tenants text[], OUT tasks text[],
    OUT keys text[], OUT units integer[], OUT prices double precision[], OUT froms smallint[], OUT lanes text[], OUT last text,
    OUT firsts text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    met text[]; reach integer;
    more text[];  -- with the last place of each that the line shows
    more_at timestamptz[];
    more_id uuid[];
BEGIN
    -- beyond those that the line shows, but not so far that it costs more than it finds
    reach := walk + least(walk, (SELECT count(DISTINCT t) FROM unnest(shown) AS t));
    met := ARRAY(SELECT t.tenant FROM rota.walk_tenants(segments, queue, rank, from_tenant, reach) AS t);
    last := met[cardinality(met)];
    met := ARRAY(SELECT u.tenant FROM unnest(met) WITH ORDINALITY AS u(tenant, i)
                   LEFT JOIN (SELECT DISTINCT x.tenant FROM unnest(shown) AS x(tenant)) AS s ON s.tenant = u.tenant
                  WHERE s.tenant IS NULL AND NOT coalesce(u.tenant = ANY (exclude_tenants), false) ORDER BY u.i LIMIT walk);
    last := CASE WHEN cardinality(met) = walk THEN met[walk] ELSE last END;
    SELECT array_agg(o.tenant), array_agg(o.run_at), array_agg(o.id) INTO more, more_at, more_id
      FROM (SELECT t.*, sum(greatest(0, -t.spare)) OVER ()
                   - cardinality(met) * greatest(1, least(rate, share::double precision / (cardinality(met) + count(*) OVER ()))) AS over,
                   sum(t.spare) FILTER (WHERE t.spare > 0) OVER (ORDER BY t.spare DESC, t.tenant) - t.spare AS before
              FROM (SELECT l.tenant, l.run_at, l.id,
                           greatest(0, ceil(rate * CASE WHEN has_weights THEN rota.weight_of(l.tenant) ELSE 1 END)
                                       - coalesce(h.n, 0)) - l.n AS spare
                      FROM (SELECT u.tenant, count(*) AS n, max(u.run_at) AS run_at,
                                   (array_agg(u.id ORDER BY u.run_at DESC, u.id DESC))[1] AS id
                              FROM unnest(shown, shown_at, shown_id) AS u(tenant, run_at, id) GROUP BY 1) AS l
                      LEFT JOIN unnest(holder, holding) AS h(tenant, n) ON h.tenant = l.tenant) AS t) AS o
     WHERE o.spare > 0 AND o.before < o.over;
    IF met = '{}' AND more IS NULL THEN
        RETURN;
    END IF;
    firsts := ARRAY(SELECT pick_tenants.j || ':' || m FROM unnest(
        met[1:CASE WHEN walk = share THEN walk ELSE share / 16 + (random() * 16 < share % 16)::integer END]) AS m);
    SELECT r.* INTO js, queues, places, ids, ats, tenants, tasks, keys, units, prices, froms, lanes
      FROM (SELECT array_agg(t.tenant) AS tenants, array_agg(t.run_at) AS ats, array_agg(t.id) AS ids,
                   array_agg(greatest(1, ceil(rate * CASE WHEN has_weights THEN rota.weight_of(t.tenant) ELSE 1 END)
                                         - coalesce(h.n, 0))::integer) AS most
              FROM (SELECT u.tenant, '-infinity'::timestamptz AS run_at, '00000000-0000-0000-0000-000000000000'::uuid AS id
                      FROM unnest(met) AS u(tenant)
                    UNION ALL SELECT * FROM unnest(more, more_at, more_id)) AS t
              LEFT JOIN unnest(holder, holding) AS h(tenant, n) ON h.tenant = t.tenant) AS m,
           rota.read_tenants(segments, queue, rank, j, m.tenants, m.ats, m.ids, m.most, known_tasks) AS r;
END
$$;

-- The next jobs of each of these tenants in the line of a queue and rank, behind a place, up to its number.
CREATE FUNCTION rota.read_tenants(
    segments integer[], queue text, rank integer, j integer, of_tenants text[], after_at timestamptz[], after_id uuid[],
    numbers integer[], known_tasks text[],
    OUT js integer[], OUT queues text[], OUT places tid[], OUT ids uuid[], OUT ats timestamptz[], OUT tenants text[], OUT tasks text[],
    OUT keys text[], OUT units integer[], OUT prices double precision[], OUT froms smallint[], OUT lanes text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(read_tenants.j), array_agg(read_tenants.queue), array_agg(x.place), array_agg(x.id), array_agg(x.run_at),
           array_agg(x.tenant), array_agg(x.task), array_agg(x.key), array_agg(x.units), array_agg(x.price), array_agg(2::smallint),
           array_agg(x.lane)
      INTO js, queues, places, ids, ats, tenants, tasks, keys, units, prices, froms, lanes
      FROM (SELECT y.*, row_number() OVER (PARTITION BY y.tenant ORDER BY y.run_at, y.id) AS nth
              FROM (SELECT f.*, m.most
                      FROM unnest(of_tenants, after_at, after_id, numbers) AS m(tenant, run_at, id, most),
                           unnest(segments) AS g(segment), LATERAL (
                           SELECT l.* FROM (
                               SELECT q.ctid AS place, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units, q.price, q.lane
                                 FROM rota.queued AS q
                                WHERE q.due AND q.lane IS NOT NULL AND q.segment = g.segment AND q.queue = read_tenants.queue
                                  AND q.rank = read_tenants.rank
                                  AND (q.tenant, q.run_at, q.id) > (m.tenant, m.run_at, m.id) AND q.tenant <= m.tenant
                                ORDER BY q.tenant, q.run_at, q.id LIMIT m.most + 16) AS l
                            WHERE known_tasks IS NULL OR l.task = ANY (known_tasks) LIMIT m.most) AS f) AS y) AS x
     WHERE x.nth <= x.most;
END
$$;

-- Where some tenants weigh more than others and a claim has less than a job for one of them: turns. From the one behind
-- from_tenant on and round, each that waits is given as many jobs as its weight says, on average one; a part of a job is
-- one by chance. Those jobs that the line does not show, and how many each may have (firsts as j:TENANT). last: who has
-- had its turn; so_far: how often chance was asked, what the next one may have still, and who that is; before: the same, of
-- the last claim. mean: of the weights; rate: see rota.share_out. Who has a full share in hand is passed over.
CREATE FUNCTION rota.take_turns(
    segments integer[], queue text, rank integer, from_tenant text, before json, j integer, share integer,
    rate double precision, mean double precision, shown text[], shown_at timestamptz[], shown_id uuid[], known_tasks text[],
    exclude_tenants text[], holder text[], holding integer[],
    OUT js integer[], OUT queues text[], OUT places tid[], OUT ids uuid[], OUT ats timestamptz[], OUT tenants text[], OUT tasks text[],
    OUT keys text[], OUT units integer[], OUT prices double precision[], OUT froms smallint[], OUT lanes text[], OUT last text,
    OUT so_far json, OUT firsts text[], OUT numbers integer[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    spread CONSTANT double precision := (sqrt(5) - 1) / 2;  -- its multiples, without the whole part, fill the range evenly
    draws CONSTANT integer := coalesce((before->>0)::integer, 0);
    more text[]; more_at timestamptz[]; more_id uuid[]; more_n integer[];
BEGIN
    WITH met AS MATERIALIZED (  -- what each is due; known: without chance
        SELECT t.i, t.tenant, greatest(t.weight / mean, rate * t.weight - coalesce(h.n, 0)) AS due,
               CASE WHEN coalesce(h.n, 0) >= ceil(rate * t.weight) OR coalesce(t.tenant = ANY (exclude_tenants), false) THEN 0
                    WHEN t.tenant = before->>2 THEN (before->>1)::integer END AS known
          FROM (SELECT w.i, w.tenant, rota.weight_of(w.tenant) AS weight
                  FROM rota.walk_tenants(segments, queue, rank, from_tenant, share + share / 4 + 8)
                       WITH ORDINALITY AS w(tenant, i)) AS t
          LEFT JOIN unnest(holder, holding) AS h(tenant, n) ON h.tenant = t.tenant
    ), given AS MATERIALIZED (
        SELECT m.i, m.tenant, m.draw, coalesce(m.known, floor(m.due + m.draw * spread - floor(m.draw * spread))::integer) AS n
          FROM (SELECT m.*, draws + count(*) FILTER (WHERE m.known IS NULL) OVER (ORDER BY m.i) AS draw FROM met AS m) AS m
    ), turn AS MATERIALIZED (
        SELECT g.i, g.tenant, g.draw, least(g.n, share - g.so_far) AS n, g.n - least(g.n, share - g.so_far) AS rest
          FROM (SELECT g.*, sum(g.n) OVER (ORDER BY g.i) - g.n AS so_far FROM given AS g) AS g WHERE g.so_far < share
    ), line AS MATERIALIZED (
        SELECT u.tenant, count(*) AS n, max(u.run_at) AS run_at, (array_agg(u.id ORDER BY u.run_at DESC, u.id DESC))[1] AS id
          FROM unnest(shown, shown_at, shown_id) AS u(tenant, run_at, id) GROUP BY 1
    )
    SELECT (array_agg(t.tenant ORDER BY t.i DESC) FILTER (WHERE t.rest = 0))[1], 
           json_build_array(max(t.draw) % 1000000, max(t.rest), max(t.tenant) FILTER (WHERE t.rest > 0)),
           array_agg(take_turns.j || ':' || t.tenant) FILTER (WHERE t.n > 0), array_agg(t.n::integer) FILTER (WHERE t.n > 0),
           array_agg(t.tenant) FILTER (WHERE t.n > coalesce(l.n, 0)),
           array_agg(coalesce(l.run_at, '-infinity')) FILTER (WHERE t.n > coalesce(l.n, 0)),
           array_agg(coalesce(l.id, '00000000-0000-0000-0000-000000000000')) FILTER (WHERE t.n > coalesce(l.n, 0)),
           array_agg((t.n - coalesce(l.n, 0))::integer) FILTER (WHERE t.n > coalesce(l.n, 0))
      INTO last, so_far, firsts, numbers, more, more_at, more_id, more_n
      FROM turn AS t LEFT JOIN line AS l ON l.tenant = t.tenant;
    IF more IS NOT NULL THEN
        SELECT r.* INTO js, queues, places, ids, ats, tenants, tasks, keys, units, prices, froms, lanes
          FROM rota.read_tenants(segments, queue, rank, j, more, more_at, more_id, more_n, known_tasks) AS r;
    END IF;
END
$$;

-- The candidates in a fair order: of each tenant those within its share as they arrived, then the others round the
-- tenants by weight; in_turns: all of them so. firsts: whose turn it is, with the numbers of rota.take_turns, or NULL.
-- Within a tenant nothing changes its order. verdict: see rota.admit;
-- the lanes are those with more jobs than were read: what is behind them joins them.
CREATE FUNCTION rota.order_fairly(
    js integer[], queues text[], places tid[], ids uuid[], ats timestamptz[], tenants text[], tasks text[], keys text[],
    all_units integer[], prices double precision[], origins smallint[], lanes text[], rates double precision[], firsts text[],
    numbers integer[], holder text[], holding integer[], in_turns boolean, has_weights boolean, full_js integer[], full_lanes text[], full_tenants text[],
    known_tasks text[], exclude_tenants text[])
RETURNS TABLE (
    j integer, queue text, place tid, id uuid, run_at timestamptz, tenant text, task text, key text, units integer,
    price double precision, origin smallint, lane text, verdict smallint)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH cut AS MATERIALIZED (  -- up to where those lanes were read
        SELECT DISTINCT ON (c.j, c.lane, c.tenant) c.*
          FROM unnest(js, lanes, tenants, origins, ats, ids) AS c(j, lane, tenant, origin, run_at, id)
          JOIN unnest(full_js, full_lanes, full_tenants) AS f(j, lane, tenant) ON f.j = c.j AND f.lane = c.lane AND f.tenant = c.tenant
         WHERE c.origin = 1 AND full_js IS NOT NULL
         ORDER BY c.j, c.lane, c.tenant, c.run_at DESC, c.id DESC
    )
    SELECT x.j, x.queue, x.place, x.id, x.run_at, x.tenant, x.task, x.key, x.units, x.price, x.origin, x.lane,
           CASE WHEN x.origin = 1 THEN
                    CASE WHEN NOT coalesce(x.task = ANY (known_tasks), true) THEN 2
                         WHEN x.tenant = ANY (exclude_tenants) THEN 4 ELSE 0 END
                WHEN (x.run_at, x.id) > (k.run_at, k.id) THEN 8
                WHEN (x.run_at, x.id) > (t.run_at, t.id) THEN 2
                WHEN (x.run_at, x.id) > (e.run_at, e.id) THEN 4
                ELSE 0 END::smallint
      FROM (SELECT y.*, coalesce(y.nth <= y.number, rates[y.j] IS NULL OR y.nth <= ceil(rates[y.j] * y.weight) - y.held, false) AS is_within
              FROM (SELECT c.*, coalesce(h.n, 0) AS held, f.tenant IS NOT NULL AS is_first, f.n AS number,
                           CASE WHEN has_weights THEN rota.weight_of(c.tenant) ELSE 1 END AS weight,
                           row_number() OVER (PARTITION BY c.j, c.tenant ORDER BY c.run_at, c.id) AS nth
                      FROM unnest(js, queues, places, ids, ats, tenants, tasks, keys, all_units, prices, origins, lanes) AS c(
                           j, queue, place, id, run_at, tenant, task, key, units, price, origin, lane)
                      LEFT JOIN unnest(holder, holding) AS h(tenant, n) ON h.tenant = c.tenant
                      LEFT JOIN unnest(firsts, numbers) AS f(tenant, n) ON f.tenant = c.j || ':' || c.tenant) AS y) AS x
      LEFT JOIN cut AS k ON k.j = x.j AND k.tenant = x.tenant AND k.lane = 'k:' || x.key
      LEFT JOIN cut AS t ON t.j = x.j AND t.tenant = x.tenant AND t.lane = 't:' || x.task
      LEFT JOIN cut AS e ON e.j = x.j AND e.tenant = x.tenant AND e.lane = ''
     ORDER BY x.j, CASE WHEN in_turns THEN 2 WHEN x.is_first AND x.is_within THEN 0 WHEN x.is_within THEN 1 ELSE 2 END,
              CASE WHEN x.is_within AND NOT in_turns THEN 0 ELSE (x.held + x.nth) / x.weight END, x.run_at, x.id;
END
$$;
