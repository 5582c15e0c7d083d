-- Days of history for a role that does not own the schema: it cannot make or drop them, and need not.

-- Make the partition of a day; false if it is there already, or if someone is in the way just now;
-- NULL if the role may not: its jobs then end in the default partition.
CREATE OR REPLACE FUNCTION rota.make_day(day timestamptz) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '100ms' SET client_min_messages = warning AS $$
DECLARE
    start CONSTANT timestamptz := date_trunc('day', day AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    stop CONSTANT timestamptz := start + interval '24 hours';
    name CONSTANT text := 'done_' || to_char(start AT TIME ZONE 'UTC', 'YYYYMMDD');
BEGIN
    IF to_regclass('rota.' || name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE rota.%I (LIKE rota.done INCLUDING DEFAULTS)', name);
    IF EXISTS (SELECT FROM rota.done_default WHERE finished_at >= start AND finished_at < stop) THEN
        LOCK TABLE rota.done_default IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('WITH late AS (DELETE FROM rota.done_default WHERE finished_at >= $1 AND finished_at < $2 '
                       'RETURNING *) INSERT INTO rota.%I SELECT * FROM late', name) USING start, stop;
    END IF;
    -- ATTACH, unlike CREATE … PARTITION OF, lets other sessions go on using rota.done meanwhile
    EXECUTE format('ALTER TABLE rota.done ATTACH PARTITION rota.%I FOR VALUES FROM (%L) TO (%L)', name, start, stop);
    RETURN true;
EXCEPTION
    -- someone holds a lock, was quicker, or ended a job of that day this moment: the default
    -- partition serves until the next time
    WHEN lock_not_available OR duplicate_table OR unique_violation OR check_violation OR deadlock_detected THEN
        RETURN false;
    WHEN insufficient_privilege THEN
        RETURN NULL;
END
$$;

-- Forget a whole day. False if someone is reading there: the next time will do. NULL if the role may not.
CREATE OR REPLACE FUNCTION rota.drop_day(part regclass, start timestamptz) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '100ms' AS $$
BEGIN
    EXECUTE format('ALTER TABLE rota.done DETACH PARTITION %s', part);
    EXECUTE format('DROP TABLE %s', part);
    DELETE FROM rota.tally
     WHERE minute >= start AND minute < start + interval '24 hours' AND state <> 'removed';
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
        RETURN false;
    WHEN insufficient_privilege THEN
        RETURN NULL;
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (8, '0008_days');
