-- What the tables do by themselves.

-- An edit by hand counts as a write, so that a scheduler that read the row before does not fire it; new
-- timing is computed again. Programs raise the version themselves.
CREATE FUNCTION rota.edited_by_hand() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
    IF (NEW.cron, NEW.every, NEW.at, NEW.timezone, NEW.start_at, NEW.until, NEW.jitter, NEW.calendar,
        NEW.calendar_mode, NEW.enabled)
       IS DISTINCT FROM
       (OLD.cron, OLD.every, OLD.at, OLD.timezone, OLD.start_at, OLD.until, OLD.jitter, OLD.calendar,
        OLD.calendar_mode, OLD.enabled) THEN
        NEW.next_run_at := NULL;
        NEW.check_at := NULL;
        NEW.held := '{}';
        NEW.reason := CASE WHEN NOT NEW.enabled THEN NEW.reason END;
    END IF;
    RETURN NEW;
END
$$;

-- The audit log is append-only.
CREATE FUNCTION rota.keep_audit() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('rota.pruning', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = format('the audit log is append-only: %s is refused', TG_OP),
        HINT = 'Use rota.prune_audit to delete old lines.';
END
$$;
