-- Admission: whether the limits of a job let it begin. core/jobs/admission.py has the same arithmetic; tests hold
-- the two together. What runs is counted, under the locks of the limits: there is no counter that could be wrong.

-- The limits of these names, locked in the order of their names; which of them are not locked, as they take too long.
-- patient: wait for another claim, for a tenth of a second; false: those that can be locked at once; NULL: none.
-- has_waited: another claim has committed meanwhile, perhaps with jobs that the caller has read.
CREATE FUNCTION rota.lock_limits(
    names text[], patient boolean, OUT limits rota.limits[], OUT unlocked text[], OUT has_waited boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET lock_timeout = '100ms'
AS $$
BEGIN
    has_waited := false;
    unlocked := '{}';
    IF patient IS NOT NULL THEN
        BEGIN
            SELECT array_agg(l) INTO limits
              FROM (SELECT * FROM rota.limits WHERE name = ANY (names) ORDER BY name FOR UPDATE NOWAIT) AS l;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
        END;
    END IF;
    IF patient THEN  -- else others may wait for what we have locked already
        BEGIN
            SELECT array_agg(l) INTO limits
              FROM (SELECT * FROM rota.limits WHERE name = ANY (names) ORDER BY name FOR UPDATE) AS l;
            has_waited := true;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
        END;
    END IF;
    IF patient IS NOT NULL THEN
        unlocked := ARRAY(SELECT l.name FROM rota.limits AS l WHERE l.name = ANY (names) FOR UPDATE SKIP LOCKED);
    END IF;
    SELECT array_agg(l), coalesce(array_agg(l.name) FILTER (WHERE NOT l.name = ANY (unlocked)), '{}') INTO limits, unlocked
      FROM rota.limits AS l WHERE l.name = ANY (names);
END
$$;

-- The tenants among these that have a budget, locked likewise.
CREATE FUNCTION rota.lock_budgets(
    names text[], patient boolean, OUT budgeted text[], OUT is_locked boolean, OUT has_waited boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET lock_timeout = '100ms'
AS $$
BEGIN
    budgeted := ARRAY(SELECT t.name FROM rota.tenants AS t
                    WHERE t.name = ANY (names) AND t.budget >= 0 AND t.period IN ('hour', 'day', 'week', 'month'));
    has_waited := false;
    is_locked := true;
    IF budgeted = '{}' THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM FROM rota.tenants AS t WHERE t.name = ANY (budgeted) ORDER BY t.name FOR UPDATE NOWAIT;
        RETURN;
    EXCEPTION WHEN lock_not_available THEN
    END;
    IF patient THEN
        PERFORM FROM rota.tenants AS t WHERE t.name = ANY (budgeted) ORDER BY t.name FOR UPDATE;
        has_waited := true;
    ELSE
        is_locked := false;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    is_locked := false;
END
$$;

-- The names of all limits that could concern these jobs. rules: which kinds there are, see rota.segments.
CREATE FUNCTION rota.name_limits(queues text[], tasks text[], tenants text[], keys text[], rules integer) RETURNS text[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    known CONSTANT text[] := CASE WHEN rules & 24 <> 0 THEN
        ARRAY(SELECT DISTINCT k FROM unnest(keys) AS k WHERE k IS NOT NULL) END;
    names text[] := '{}';
BEGIN
    IF rules & 8 <> 0 THEN
        names := names || ARRAY(SELECT 'key:' || k FROM unnest(known) AS k);
    END IF;
    IF rules & 16 <> 0 AND known <> '{}' THEN  -- there may be thousands of keys and of families
        names := names || ARRAY(
            SELECT DISTINCT 'key:' || left(k, f.length) || '*'
              FROM unnest(known) AS k, (SELECT DISTINCT length(f.subject) AS length FROM rota.limits AS f WHERE f.scope = 'family') AS f
             WHERE f.length <= length(k));
    END IF;
    IF rules & 1 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'queue:' || q FROM unnest(queues) AS q);
    END IF;
    IF rules & 2 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'task:' || t FROM unnest(tasks) AS t);
    END IF;
    IF rules & 4 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'tenant:' || t FROM unnest(tenants) AS t);
    END IF;
    RETURN names;
END
$$;

-- What the limits of one scope have room for, by what each is for: a queue, a task, a tenant or a key.
-- limits: valid; those that are not locked admit nothing; budgeted: tenants with a budget.
CREATE FUNCTION rota.find_rooms(
    mark integer, subjects text[], limits rota.limits[], unlocked text[], budgeted text[], has_budgets boolean,
    now timestamptz, now_ns bigint)
RETURNS TABLE (
    subject text, counts boolean, room bigint, tokens bigint, every_ns bigint, burst bigint, full_ns bigint,
    sole uuid, money double precision, closes_at timestamptz, is_locked boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    own rota.limits[];
    families rota.limits[];
    prefixes text[]; lengths integer[];  -- of the families, the longest first
    known text[];
BEGIN
    IF mark = 8 THEN
        own := ARRAY(SELECT l FROM unnest(limits) AS l WHERE l.scope = 'key');
        families := ARRAY(SELECT l FROM unnest(limits) AS l WHERE l.scope = 'family' ORDER BY length(l.subject) DESC);
        prefixes := ARRAY(SELECT l.subject FROM unnest(families) AS l);
        lengths := ARRAY(SELECT DISTINCT length(p) AS n FROM unnest(prefixes) AS p ORDER BY n DESC);
        known := ARRAY(SELECT DISTINCT k FROM unnest(subjects) AS k WHERE k IS NOT NULL);
        RETURN QUERY
        WITH matched AS MATERIALIZED (
            SELECT k.key, CASE WHEN o.subject IS NOT NULL THEN 0
                               WHEN cardinality(prefixes) <= 1 THEN starts_with(k.key, prefixes[1])::integer::bigint
                               ELSE (SELECT f.i FROM (SELECT array_position(prefixes, left(k.key, n)) AS i FROM unnest(lengths) AS n) AS f
                                      WHERE f.i IS NOT NULL LIMIT 1) END AS family,
                   o.running, o.every_ns, o.burst, o.strict, o.full_ns, o.name
              FROM unnest(known) AS k(key) LEFT JOIN unnest(own) AS o ON o.subject = k.key
        ), rule AS MATERIALIZED (
            SELECT m.key, false AS in_family, m.running, m.every_ns, m.burst, m.strict, m.full_ns, m.name
              FROM matched AS m WHERE m.running IS NOT NULL OR m.every_ns IS NOT NULL
            UNION ALL
            SELECT m.key, true, f.running, f.every_ns, f.burst, f.strict, NULL, f.name
              FROM matched AS m JOIN unnest(families) WITH ORDINALITY AS f(
                   name, scope, subject, running, every_ns, burst, strict, full_ns, declared, chosen, version, updated_at, i)
                ON f.i = m.family
        ), busy AS (
            SELECT x.concurrency_key AS key, count(*) AS n FROM rota.running AS x
             WHERE x.ruled & 8 <> 0
               AND x.concurrency_key = ANY (ARRAY(SELECT r.key FROM rule AS r WHERE r.running IS NOT NULL))
             GROUP BY 1
        ), bucket AS (
            SELECT b.concurrency_key AS key, b.full_ns FROM rota.buckets AS b
             WHERE b.concurrency_key = ANY (ARRAY(SELECT r.key FROM rule AS r WHERE r.in_family AND r.every_ns IS NOT NULL))
        )
        SELECT r.key, r.running IS NOT NULL, r.running - coalesce(x.n, 0),
               {tokens of r}, r.every_ns, r.burst, r.full_ns,
               CASE WHEN r.strict THEN (SELECT q.id FROM rota.queued AS q
                                         WHERE q.concurrency_key = r.key AND (q.attempt > 0 OR q.crashes > 0)
                                         ORDER BY q.rank, q.run_at, q.id LIMIT 1) END,
               NULL::double precision, NULL::timestamptz, NOT r.name = ANY (unlocked)
          FROM (SELECT r.key, r.running, r.every_ns, r.burst, r.strict, coalesce(r.full_ns, b.full_ns, 0) AS full_ns, r.name
                  FROM rule AS r LEFT JOIN bucket AS b ON b.key = r.key) AS r LEFT JOIN busy AS x ON x.key = r.key;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT s.subject, l.running IS NOT NULL OR b.budget IS NOT NULL,
           l.running - CASE
               WHEN l.running IS NULL THEN NULL
               WHEN mark = 1 THEN (SELECT count(*) FROM (
                   SELECT FROM rota.running AS x WHERE x.queue = s.subject AND x.ruled & 1 <> 0 LIMIT l.running) AS c)
               WHEN mark = 2 THEN (SELECT count(*) FROM (
                   SELECT FROM rota.running AS x WHERE x.task = s.subject AND x.ruled & 2 <> 0 LIMIT l.running) AS c)
               ELSE (SELECT count(*) FROM (
                   SELECT FROM rota.running AS x WHERE x.tenant = s.subject AND x.ruled & 4 <> 0 LIMIT l.running) AS c)
               END,
           {tokens of l}, l.every_ns, l.burst, l.full_ns, NULL::uuid,
           b.budget - b.reserved - b.spent, b.ends, NOT coalesce(l.name = ANY (unlocked), false) AND (b.budget IS NULL OR has_budgets)
      FROM (SELECT f.subject FROM unnest(limits) AS f
             WHERE f.scope = CASE mark WHEN 1 THEN 'queue' WHEN 2 THEN 'task' ELSE 'tenant' END
            UNION SELECT t FROM unnest(budgeted) AS t WHERE mark = 4) AS s
      LEFT JOIN (SELECT * FROM unnest(limits) AS f
                  WHERE f.scope = CASE mark WHEN 1 THEN 'queue' WHEN 2 THEN 'task' ELSE 'tenant' END) AS l
        ON l.subject = s.subject
      LEFT JOIN LATERAL rota.find_budget(CASE WHEN mark = 4 THEN s.subject END, now) AS b ON true;
END
$$;

-- A tenant's budget, what runs has reserved of it, what has been spent, and when the period ends. One statement: what
-- is settled meanwhile counts once, as the one or the other.
CREATE FUNCTION rota.find_budget(
    tenant text, now timestamptz, OUT budget double precision, OUT reserved double precision, OUT spent double precision,
    OUT ends timestamptz)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF tenant IS NULL THEN
        RETURN;
    END IF;
    SELECT t.budget,
           (SELECT coalesce(sum(r.price), 0) FROM rota.running AS r WHERE r.tenant = t.name AND r.ruled & 4 <> 0),
           (SELECT coalesce(sum(s.amount), 0) FROM rota.spending AS s
             WHERE s.tenant = t.name AND s.unit = CASE t.period WHEN 'week' THEN 'day' ELSE t.period END
               AND s.begins >= date_trunc(t.period, now AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'),
           (date_trunc(t.period, now AT TIME ZONE 'UTC') + ('1 ' || t.period)::interval) AT TIME ZONE 'UTC'
      INTO budget, reserved, spent, ends
      FROM rota.tenants AS t
     WHERE t.name = find_budget.tenant AND t.budget >= 0 AND t.period IN ('hour', 'day', 'week', 'month');
END
$$;

-- Which of these jobs may begin, in this order, and under which limits they then count: see rota.running.ruled.
-- verdict: 0 it may, else what holds it up, by the bits of rota.running.ruled; 16: it has to be left alone now.
-- A job counts against those after it in one limit only if those checked before have let it pass, and no other is full.
-- next_at: when a rate or a budget lets the next one begin, or to try again what another claim had locked.
-- has_waited: for another claim, which may have taken some of them: they are to be read again, and nothing else is said.
-- locked: the limits that concern them.
-- is_ample: whether, if all of them begin, every limit has room for as many as were asked for, or for one more of a family's key; of a rate, for what grows back in half a second.
CREATE FUNCTION rota.admit(
    queues text[], tasks text[], tenants text[], keys text[], ids uuid[], units integer[], prices double precision[],
    rules integer, patient boolean, asked integer, now timestamptz,
    INOUT verdict smallint[], OUT ruled smallint[], OUT has_rate boolean, OUT next_at timestamptz, OUT is_ample boolean,
    OUT has_waited boolean, OUT locked text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    now_ns CONSTANT bigint := (extract(epoch FROM now) * 1000000)::bigint * 1000;
    names CONSTANT text[] := rota.name_limits(queues, tasks, tenants, keys, rules);
    limits rota.limits[];
    unlocked text[] := '{}';
    budgeted text[];
    has_budgets boolean := true;  -- whether they are locked
    is_strict boolean;
    subjects text[];
    mark integer;
    next_ns bigint;
    soon_ns bigint;
    soon_at timestamptz;
    part_rates boolean;
    is_quick boolean;
    is_uniform boolean := true;  -- all are under the same so far
    part_ample boolean;
    own text[];  -- keys with a limit of their own
    bits integer;
    marks integer[]; other integer;  -- of the limits that concern them
    is_out boolean[];  -- of which one is full
BEGIN
    has_rate := false;
    is_ample := true;
    has_waited := false;
    IF names <> '{}' THEN
        SELECT l.limits, l.unlocked, l.has_waited INTO limits, unlocked, has_waited FROM rota.lock_limits(names, patient) AS l;
    END IF;
    IF rules & 64 <> 0 THEN
        SELECT b.budgeted, b.is_locked, b.has_waited OR admit.has_waited INTO budgeted, has_budgets, has_waited
          FROM rota.lock_budgets(ARRAY(SELECT DISTINCT t FROM unnest(tenants) AS t), patient AND unlocked = '{}') AS b;
    END IF;
    locked := ARRAY(SELECT l.name FROM unnest(limits) AS l);
    IF has_waited THEN
        RETURN;
    END IF;
    -- what was spoiled by hand holds nothing up
    limits := ARRAY(SELECT l FROM unnest(limits) AS l
                    WHERE (l.running > 0 OR l.running IS NULL) AND coalesce(l.running, l.every_ns) IS NOT NULL
                      AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0));
    IF coalesce(cardinality(limits), 0) = 0 AND coalesce(budgeted, '{}') = '{}' THEN
        RETURN;
    END IF;
    IF NOT (unlocked = '{}' AND has_budgets) THEN
        next_at := now + interval '20 milliseconds';  -- no one else comes back for what is left alone now
    END IF;
    own := ARRAY(SELECT l.subject FROM unnest(limits) AS l WHERE l.scope = 'key');
    ruled := array_fill(0::smallint, ARRAY[cardinality(ids)]);
    marks := ARRAY(SELECT m FROM unnest(ARRAY[8, 2, 4, 1]) WITH ORDINALITY AS u(m, i)
                    WHERE m = 4 AND budgeted <> '{}' OR EXISTS (
                          SELECT FROM unnest(limits) AS l
                           WHERE m = CASE l.scope WHEN 'queue' THEN 1 WHEN 'task' THEN 2 WHEN 'tenant' THEN 4 ELSE 8 END)
                    ORDER BY i);
    FOREACH mark IN ARRAY marks LOOP
        subjects := CASE mark WHEN 8 THEN keys WHEN 2 THEN tasks WHEN 4 THEN tenants ELSE queues END;
        -- mostly there is room for all, and they are under the same rules
        SELECT coalesce(bool_and(r.subject IS NULL OR r.is_locked AND (g.n <= r.room) IS NOT FALSE
                                 AND (g.units <= r.tokens) IS NOT FALSE AND r.sole IS NULL AND r.money IS NULL), true)
                   AND count(DISTINCT r.bits) <= 1 AND bool_and(r.subject IS NULL) IN (true, bool_or(r.subject IS NULL)),
               coalesce(min(r.bits), 0), bool_or(r.every_ns IS NOT NULL),
               bool_and(r.subject IS NULL OR r.is_locked AND r.sole IS NULL AND (g.n + g.others <= r.room) IS NOT FALSE
                        AND (g.units + greatest(g.others, (499999999 + r.every_ns) / r.every_ns) <= r.tokens) IS NOT FALSE)
          INTO is_quick, bits, part_rates, part_ample
          FROM (SELECT u.subject, count(*) AS n, sum(coalesce(u.units, 1)) AS units,
                       CASE WHEN mark = 8 AND NOT u.subject = ANY (own) THEN 1 ELSE asked END AS others
                  FROM unnest(subjects, units) AS u(subject, units)
                 GROUP BY u.subject) AS g
          LEFT JOIN (SELECT f.*, (CASE WHEN f.counts THEN mark ELSE 0 END | CASE WHEN f.every_ns IS NULL THEN 0 ELSE 16 END) AS bits
                       FROM rota.find_rooms(mark, subjects, limits, unlocked, budgeted, has_budgets, now, now_ns) AS f) AS r
            ON r.subject = g.subject;
        is_ample := is_ample AND part_ample;
        IF is_quick THEN
            IF bits <> 0 THEN
                ruled := CASE WHEN is_uniform THEN array_fill((ruled[1] | bits)::smallint, ARRAY[cardinality(ids)])
                              ELSE ARRAY(SELECT (b | bits)::smallint FROM unnest(ruled) AS b) END;
            END IF;
            has_rate := has_rate OR coalesce(part_rates, false);
            CONTINUE;
        END IF;
        is_uniform := false;
        IF is_out IS NULL THEN
            is_out := array_fill(false, ARRAY[cardinality(ids)]);
            IF cardinality(marks) > 1 THEN
                FOREACH other IN ARRAY marks LOOP
                    SELECT array_agg(u.is_out OR coalesce(
                               NOT r.is_locked OR r.sole <> u.id OR r.room <= 0 OR r.tokens < coalesce(u.units, 1) OR r.money <= 0
                               OR r.money < u.price, false) ORDER BY u.i)
                      INTO is_out
                      FROM unnest(CASE other WHEN 8 THEN keys WHEN 2 THEN tasks WHEN 4 THEN tenants ELSE queues END,
                                  ids, units, prices, is_out) WITH ORDINALITY AS u(subject, id, units, price, is_out, i)
                      LEFT JOIN rota.find_rooms(
                           other, CASE other WHEN 8 THEN keys WHEN 2 THEN tasks WHEN 4 THEN tenants ELSE queues END,
                           limits, unlocked, budgeted, has_budgets, now, now_ns) AS r ON r.subject = u.subject;
                END LOOP;
            END IF;
        END IF;
        WITH rule AS MATERIALIZED (
            SELECT * FROM rota.find_rooms(mark, subjects, limits, unlocked, budgeted, has_budgets, now, now_ns)
        ), job AS (
            SELECT j.*, count(*) FILTER (WHERE j.verdict = 0 AND NOT j.is_out) OVER w + j.is_out::integer AS nth,
                   coalesce(sum(j.units) FILTER (WHERE j.verdict = 0 AND NOT j.is_out) OVER w, 0)
                       + CASE WHEN j.is_out THEN j.units ELSE 0 END AS all_units,
                   coalesce(sum(j.price) FILTER (WHERE j.verdict = 0 AND NOT j.is_out) OVER w, 0)
                       + CASE WHEN j.is_out THEN j.price ELSE 0 END AS all_prices
              FROM (SELECT i, subject, verdict, ruled, coalesce(units, 1)::bigint AS units,
                           CASE WHEN mark = 4 THEN coalesce(price, 0) END AS price, id, is_out
                      FROM unnest(subjects, verdict, ruled, units, prices, ids, is_out) WITH ORDINALITY
                           AS u(subject, verdict, ruled, units, price, id, is_out, i)) AS j
            WINDOW w AS (PARTITION BY j.subject ORDER BY j.i ROWS UNBOUNDED PRECEDING)
        ), judged AS (
            SELECT j.*, r.counts, r.every_ns, r.burst, r.full_ns, r.closes_at,
                   r.subject IS NULL OR (CASE WHEN r.sole IS NULL THEN j.nth <= r.room ELSE r.room > 0 END) IS NOT FALSE
                       AND (r.sole IS NULL OR r.sole = j.id)
                       AND (r.money IS NULL OR j.all_prices - j.price < r.money AND (j.price = 0 OR j.all_prices <= r.money))
                       AS fits,
                   r.subject IS NULL
                       OR (CASE WHEN r.sole IS NULL THEN j.all_units ELSE j.units END <= r.tokens) IS NOT FALSE AS has_tokens,
                   coalesce(r.is_locked, true) AS is_locked
              FROM job AS j LEFT JOIN rule AS r ON r.subject = j.subject
        )
        SELECT array_agg(CASE WHEN verdict <> 0 THEN verdict WHEN NOT is_locked THEN 16 WHEN fits AND has_tokens THEN 0
                              ELSE mark END::smallint ORDER BY i),
               array_agg((ruled | coalesce(CASE WHEN counts THEN mark END, 0) | CASE WHEN every_ns IS NULL THEN 0 ELSE 16 END
                         )::smallint ORDER BY i),
               min(least(9000000000000000000, greatest(full_ns, now_ns)
                         + (all_units - least(burst, 4000000000000000000 / every_ns)) * every_ns)) FILTER (WHERE verdict = 0 AND fits AND NOT has_tokens AND units <= burst),
               bool_or(every_ns IS NOT NULL), min(closes_at) FILTER (WHERE verdict = 0 AND NOT fits)
          INTO verdict, ruled, soon_ns, part_rates, soon_at FROM judged;
        next_ns := least(next_ns, soon_ns);
        has_rate := has_rate OR coalesce(part_rates, false);
        next_at := least(next_at, soon_at);
    END LOOP;
    next_at := least(next_at, 'epoch'::timestamptz + ceil(next_ns / 1000.0) * interval '1 microsecond');
END
$$;

-- The buckets of the limits that these jobs are under, and how many units each of them gives.
CREATE FUNCTION rota.sum_units(queues text[], tasks text[], tenants text[], keys text[], units integer[], rules integer)
RETURNS TABLE (name text, key text, total bigint)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    names CONSTANT text[] := rota.name_limits(NULL, NULL, NULL, keys, rules & 16);
    prefixes text[]; lengths integer[];  -- of the families, the longest first
BEGIN
    IF rules & 16 <> 0 THEN
        prefixes := ARRAY(SELECT f.subject FROM rota.limits AS f
                           WHERE f.name = ANY (names) AND f.scope = 'family' AND (f.running > 0 OR f.running IS NULL) AND coalesce(f.running, f.every_ns) IS NOT NULL
                             AND (f.every_ns IS NULL OR f.every_ns > 0 AND f.burst > 0)
                           ORDER BY length(f.subject) DESC);
        lengths := ARRAY(SELECT DISTINCT length(p) AS n FROM unnest(prefixes) AS p ORDER BY n DESC);
    END IF;
    IF rules & 7 <> 0 THEN
        RETURN QUERY
        SELECT u.name, NULL::text, sum(coalesce(u.units, 1))
          FROM (SELECT 'queue:' || j.queue, j.units FROM unnest(queues, units) AS j(queue, units) WHERE rules & 1 <> 0
                UNION ALL
                SELECT 'task:' || j.task, j.units FROM unnest(tasks, units) AS j(task, units) WHERE rules & 2 <> 0
                UNION ALL
                SELECT 'tenant:' || j.tenant, j.units FROM unnest(tenants, units) AS j(tenant, units) WHERE rules & 4 <> 0)
               AS u(name, units) GROUP BY u.name;
    END IF;
    IF rules & 24 <> 0 THEN
        RETURN QUERY
        SELECT CASE WHEN k.is_own THEN 'key:' || k.key ELSE 'key:' || k.prefix || '*' END,
               CASE WHEN NOT k.is_own THEN k.key END, k.units
          FROM (SELECT g.key, g.units, CASE WHEN rules & 8 <> 0 THEN EXISTS (
                           SELECT FROM rota.limits AS l
                            WHERE l.name = 'key:' || g.key AND l.scope = 'key' AND (l.running > 0 OR l.running IS NULL)
                              AND coalesce(l.running, l.every_ns) IS NOT NULL
                              AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0)) ELSE false END AS is_own,
                       CASE WHEN cardinality(prefixes) = 1 AND starts_with(g.key, prefixes[1]) THEN prefixes[1]
                            WHEN cardinality(prefixes) > 1 THEN
                                (SELECT prefixes[f.i] FROM (SELECT array_position(prefixes, left(g.key, n)) AS i FROM unnest(lengths) AS n) AS f
                                  WHERE f.i IS NOT NULL LIMIT 1) END AS prefix
                  FROM (SELECT j.key, sum(coalesce(j.units, 1)) AS units FROM unnest(keys, units) AS j(key, units)
                         WHERE j.key IS NOT NULL GROUP BY j.key) AS g) AS k
         WHERE k.is_own OR k.prefix IS NOT NULL;
    END IF;
END
$$;

-- These jobs begin: take their units from the buckets, which the caller has locked.
CREATE FUNCTION rota.take_units(
    queues text[], tasks text[], tenants text[], keys text[], units integer[], rules integer, now timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    now_ns CONSTANT bigint := (extract(epoch FROM now) * 1000000)::bigint * 1000;
    names text[];
    of_keys text[];
    totals bigint[];
    every text[];
    every_ns bigint[];
BEGIN
    SELECT array_agg(s.name), array_agg(s.key), array_agg(s.total) INTO names, of_keys, totals
      FROM rota.sum_units(queues, tasks, tenants, keys, units, rules) AS s;
    SELECT array_agg(l.name), array_agg(l.every_ns) INTO every, every_ns
      FROM rota.limits AS l
     WHERE l.name = ANY (ARRAY(SELECT DISTINCT n FROM unnest(names) AS n)) AND l.every_ns > 0 AND l.burst > 0;
    UPDATE rota.limits AS l SET full_ns = greatest(l.full_ns, now_ns) + l.every_ns * u.total
      FROM unnest(names, of_keys, totals) AS u(name, key, total)
     WHERE u.key IS NULL AND l.name = u.name AND l.name = ANY (every);
    INSERT INTO rota.buckets AS b (concurrency_key, full_ns)
    SELECT u.key, now_ns + e.every_ns * u.total
      FROM unnest(names, of_keys, totals) AS u(name, key, total) JOIN unnest(every, every_ns) AS e(name, every_ns) ON e.name = u.name
     WHERE u.key IS NOT NULL
     ORDER BY u.key
    ON CONFLICT (concurrency_key) DO UPDATE SET full_ns = greatest(b.full_ns, now_ns) + (excluded.full_ns - now_ns);
END
$$;

-- These jobs return unbegun: their buckets get back what has not grown back since, unless the limit was changed
-- meanwhile. jobs: [[queue, task, tenant, key, units, when they were claimed]]. Nothing if a claim holds the locks for
-- long: then less may begin than could, never more.
CREATE FUNCTION rota.give_back(jobs json, now timestamptz) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_nestloop = on
AS $$
#variable_conflict use_column
DECLARE
    rules CONSTANT integer := (SELECT s.rules FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1);
    names CONSTANT text[] := rota.name_limits(
        ARRAY(SELECT j->>0 FROM json_array_elements(jobs) AS j), ARRAY(SELECT j->>1 FROM json_array_elements(jobs) AS j),
        ARRAY(SELECT j->>2 FROM json_array_elements(jobs) AS j), ARRAY(SELECT j->>3 FROM json_array_elements(jobs) AS j), rules);
    back json;
BEGIN
    IF (SELECT l.unlocked FROM rota.lock_limits(names, true) AS l) <> '{}' THEN
        RETURN;
    END IF;
    SELECT json_agg(b) INTO back FROM (
        SELECT u.name, u.key, sum(greatest(0, u.total * l.every_ns - greatest(0,
                   (extract(epoch FROM now) * 1000000)::bigint * 1000
                   - (extract(epoch FROM u.claimed_at) * 1000000)::bigint * 1000)))::bigint AS ns
          FROM (SELECT (j->>5)::timestamptz AS claimed_at, x.*
                  FROM json_array_elements(jobs) AS j, LATERAL rota.sum_units(
                       ARRAY[j->>0], ARRAY[j->>1], ARRAY[j->>2], ARRAY[j->>3], ARRAY[(j->>4)::integer], rules) AS x) AS u
          JOIN rota.limits AS l ON l.name = u.name
         WHERE l.every_ns > 0 AND l.burst > 0 AND l.updated_at <= u.claimed_at
         GROUP BY u.name, u.key) AS b;
    UPDATE rota.limits AS l SET full_ns = l.full_ns - b.ns FROM json_to_recordset(back) AS b(name text, key text, ns bigint)
     WHERE b.key IS NULL AND l.name = b.name;
    UPDATE rota.buckets AS k SET full_ns = k.full_ns - b.ns FROM json_to_recordset(back) AS b(name text, key text, ns bigint)
     WHERE k.concurrency_key = b.key;
END
$$;

-- Which queues are full by their own limit, as far as can be seen without a lock, and when the next rate lets one begin.
CREATE FUNCTION rota.full_queues(names text[], now timestamptz, OUT is_full boolean[], OUT next_at timestamptz)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    now_ns CONSTANT bigint := (extract(epoch FROM now) * 1000000)::bigint * 1000;
    next_ns bigint;
BEGIN
    SELECT array_agg(coalesce(f.is_busy OR f.tokens <= 0, false) ORDER BY f.i),
           min(f.full_ns - (least(f.burst, 4000000000000000000 / f.every_ns) - 1) * f.every_ns) FILTER (WHERE f.tokens <= 0)
      INTO is_full, next_ns
      FROM (SELECT u.i, l.every_ns, l.burst, l.full_ns,
                   {tokens of l} AS tokens,
                   l.running <= (SELECT count(*) FROM (
                       SELECT FROM rota.running AS x WHERE x.queue = u.name AND x.ruled & 1 <> 0 LIMIT l.running) AS c) AS is_busy
              FROM unnest(names) WITH ORDINALITY AS u(name, i) LEFT JOIN LATERAL (
                   SELECT * FROM rota.limits AS l
                    WHERE l.name = 'queue:' || u.name AND l.scope = 'queue' AND (l.running > 0 OR l.running IS NULL)
                      AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0) OFFSET 0) AS l ON true) AS f;
    next_at := 'epoch'::timestamptz + ceil(next_ns / 1000.0) * interval '1 microsecond';
END
$$;
