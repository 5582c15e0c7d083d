-- A row may be written by hand: name, task and one of cron, every (seconds) and at are enough.
CREATE TABLE rota_schedules (
  id            TEXT    NOT NULL CHECK (typeof(id) = 'text') DEFAULT (lower(
                  hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
                  || '-8' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  name          TEXT    NOT NULL CHECK (typeof(name) = 'text'),
  task          TEXT    NOT NULL,
  tenant        TEXT    NOT NULL CHECK (typeof(tenant) = 'text') DEFAULT 'default',
  cron          TEXT,
  every         REAL,
  at            INTEGER,
  timezone      TEXT    NOT NULL DEFAULT 'UTC',
  start_at      INTEGER,
  until         INTEGER,
  jitter        REAL    NOT NULL DEFAULT 0,
  payload_json  TEXT    NOT NULL DEFAULT '{}',
  queue         TEXT,
  priority      INTEGER,
  max_attempts  INTEGER,
  timeout       REAL,
  description   TEXT    NOT NULL DEFAULT '',
  enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)) DEFAULT 1,
  reason        TEXT,
  missed        TEXT    NOT NULL DEFAULT 'latest',
  missed_cap    INTEGER NOT NULL DEFAULT 100,
  missed_window REAL,
  overlap       TEXT    NOT NULL DEFAULT 'allow',
  calendar      TEXT,
  calendar_mode TEXT    NOT NULL DEFAULT 'skip',
  source        TEXT    NOT NULL DEFAULT 'sql',
  owner         TEXT,
  declared_json TEXT,
  next_run_at   INTEGER,
  check_at       INTEGER,
  held          TEXT,                                  -- JSON array of instants
  last_fire_at  INTEGER,
  version       INTEGER NOT NULL CHECK (typeof(version) = 'integer') DEFAULT 1,
  created_at    INTEGER NOT NULL DEFAULT (
                  CAST(strftime('%s', 'now') AS INTEGER) * 1000000
                  + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
  updated_at    INTEGER NOT NULL DEFAULT (
                  CAST(strftime('%s', 'now') AS INTEGER) * 1000000
                  + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
  -- When to check it: at once if its times have not been computed yet, or cannot be read.
  -- A rule that is over has no times either, but was written more than once.
  due_at        INTEGER GENERATED ALWAYS AS (
                  CASE
                    WHEN typeof(check_at) IN ('integer', 'real') THEN check_at
                    WHEN check_at IS NOT NULL THEN 0
                    WHEN next_run_at IS NULL AND last_fire_at IS NULL AND version = 1 THEN 0
                  END) VIRTUAL
);

CREATE UNIQUE INDEX rota_schedules_id ON rota_schedules (id);
CREATE UNIQUE INDEX rota_schedules_name ON rota_schedules (tenant, name);
CREATE INDEX rota_schedules_due ON rota_schedules (due_at, id) WHERE enabled = 1;

-- An edit by hand (ours raise the version) of what decides when it fires: computed again, from now.
CREATE TRIGGER rota_schedules_edited_by_hand
AFTER UPDATE OF cron, every, at, timezone, start_at, until, jitter, calendar, calendar_mode, enabled
ON rota_schedules WHEN NEW.version = OLD.version
BEGIN
  UPDATE rota_schedules SET version = version + 1, next_run_at = NULL, check_at = 0, held = NULL
  WHERE rowid = NEW.rowid;
END;

