-- What the tables do by themselves.

-- A row written by hand may name its first run. A new schedule wakes the schedulers.
CREATE FUNCTION rota.schedule_added() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF NEW.check_at IS NULL AND NEW.next_run_at IS NOT NULL THEN
        NEW.manual_run_at := NEW.next_run_at;
        NEW.check_at := NEW.next_run_at;
    END IF;
    PERFORM pg_notify('rota_schedules', '');
    RETURN NEW;
END
$$;

-- An edit by hand counts as a write, so that a scheduler that read the row before does not fire it. A next
-- run that was set is kept, and fires whatever the rule says; new timing is computed again, from now on.
-- Programs raise the version themselves.
CREATE FUNCTION rota.edited_by_hand() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    was_set boolean := NEW.next_run_at IS DISTINCT FROM OLD.next_run_at;
    is_retimed boolean :=
        (NEW.cron, NEW.every, NEW.at, NEW.timezone, NEW.start_at, NEW.until, NEW.jitter, NEW.calendar,
         NEW.calendar_mode, NEW.enabled)
        IS DISTINCT FROM
        (OLD.cron, OLD.every, OLD.at, OLD.timezone, OLD.start_at, OLD.until, OLD.jitter, OLD.calendar,
         OLD.calendar_mode, OLD.enabled);
BEGIN
    NEW.version := OLD.version + 1;
    IF is_retimed THEN
        NEW.held := '{}';
        NEW.reason := CASE WHEN NOT NEW.enabled THEN NEW.reason END;
    END IF;
    IF was_set AND NEW.next_run_at IS NOT NULL THEN
        NEW.manual_run_at := NEW.next_run_at;
        NEW.check_at := NEW.next_run_at;
    ELSIF was_set OR is_retimed THEN
        NEW.next_run_at := NULL;
        NEW.check_at := NULL;
    ELSIF OLD.check_at IS NULL AND OLD.next_run_at IS NULL THEN
        RETURN NEW;  -- not computed yet: it counts from updated_at, which must not move
    END IF;
    IF NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at THEN
        NEW.updated_at := now();
    END IF;
    PERFORM pg_notify('rota_schedules', '');
    RETURN NEW;
END
$$;

-- The audit log is append-only.
CREATE FUNCTION rota.keep_audit() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    RAISE insufficient_privilege USING
        MESSAGE = format('the audit log is append-only: %s is refused', TG_OP),
        HINT = 'Use rota.prune_audit to delete old lines.';
END
$$;

-- A line gets its seal once, and goes only with a seal that is marked as pruned. Nothing else changes it. The
-- owner of the tables could get round this; the hash chain shows it.
CREATE FUNCTION rota.keep_entry() RETURNS trigger
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    before record := OLD;
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT FROM rota.audit_seals AS s WHERE s.number = OLD.seal AND s.pruned_at IS NOT NULL) THEN
            RETURN OLD;
        END IF;
    ELSE
        before.seal := NEW.seal;
        IF OLD.seal IS NULL AND NEW.seal IS NOT NULL AND before::text = NEW::text THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = format('the audit log is append-only: %s is refused', TG_OP),
        HINT = 'Use rota.prune_audit to delete old lines.';
END
$$;
