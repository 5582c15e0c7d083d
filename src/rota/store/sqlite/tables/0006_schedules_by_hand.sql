-- Rows of schedules that are written by hand: a next run that was set is a fire whatever the rule says, and
-- every edit raises the version, so that a scheduler that read the row before does not undo it.
ALTER TABLE rota_schedules ADD COLUMN manual_run_at INTEGER;

DROP TRIGGER rota_schedules_edited_by_hand;

CREATE TRIGGER rota_schedules_added_by_hand AFTER INSERT ON rota_schedules
WHEN NEW.source = 'sql' AND NEW.check_at IS NULL AND NEW.next_run_at IS NOT NULL
BEGIN
  UPDATE rota_schedules
  SET version = version + 1, check_at = next_run_at, manual_run_at = next_run_at
  WHERE rowid = NEW.rowid;
END;

-- Programs raise the version themselves. Of these three, one acts.
CREATE TRIGGER rota_schedules_set_by_hand AFTER UPDATE ON rota_schedules
WHEN NEW.version = OLD.version AND NEW.next_run_at IS NOT OLD.next_run_at AND NEW.next_run_at IS NOT NULL
BEGIN
  UPDATE rota_schedules
  SET version = version + 1, check_at = next_run_at, manual_run_at = next_run_at,
    reason = iif(enabled, NULL, reason),
    updated_at = iif(NEW.updated_at IS NOT OLD.updated_at, updated_at, CAST(strftime('%s', 'now') AS INTEGER) * 1000000
      + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
  WHERE rowid = NEW.rowid;
END;

-- New timing is computed again, from now on.
CREATE TRIGGER rota_schedules_retimed_by_hand AFTER UPDATE ON rota_schedules
WHEN NEW.version = OLD.version
  AND (NEW.next_run_at IS NULL AND OLD.next_run_at IS NOT NULL
    OR NEW.next_run_at IS OLD.next_run_at AND
      (NEW.cron, NEW.every, NEW.at, NEW.timezone, NEW.start_at, NEW.until, NEW.jitter, NEW.calendar,
       NEW.calendar_mode, NEW.enabled)
      IS NOT
      (OLD.cron, OLD.every, OLD.at, OLD.timezone, OLD.start_at, OLD.until, OLD.jitter, OLD.calendar,
       OLD.calendar_mode, OLD.enabled))
BEGIN
  UPDATE rota_schedules
  SET version = version + 1, next_run_at = NULL, check_at = 0, held = NULL,
    reason = iif(enabled, NULL, reason),
    updated_at = iif(NEW.updated_at IS NOT OLD.updated_at, updated_at, CAST(strftime('%s', 'now') AS INTEGER) * 1000000
      + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
  WHERE rowid = NEW.rowid;
END;

-- One that is not computed yet counts from updated_at, which must not move.
CREATE TRIGGER rota_schedules_edited_by_hand AFTER UPDATE ON rota_schedules
WHEN NEW.version = OLD.version AND NEW.next_run_at IS OLD.next_run_at AND
  (NEW.cron, NEW.every, NEW.at, NEW.timezone, NEW.start_at, NEW.until, NEW.jitter, NEW.calendar,
   NEW.calendar_mode, NEW.enabled)
  IS
  (OLD.cron, OLD.every, OLD.at, OLD.timezone, OLD.start_at, OLD.until, OLD.jitter, OLD.calendar,
   OLD.calendar_mode, OLD.enabled)
BEGIN
  UPDATE rota_schedules
  SET version = version + 1,
    check_at = iif(NEW.due_at = 0, 0, check_at),
    updated_at = iif(OLD.due_at = 0 OR NEW.updated_at IS NOT OLD.updated_at, updated_at, CAST(strftime('%s', 'now') AS INTEGER) * 1000000
      + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
  WHERE rowid = NEW.rowid;
END;
