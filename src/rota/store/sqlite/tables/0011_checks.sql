-- What no program of ours writes, and no hand should: a state that does not exist, attempts below zero.
-- What a hand wrote before is put right first.
UPDATE rota_jobs SET state = 'failed', finished_at = coalesce(finished_at, created_at), slot = NULL
WHERE state NOT IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled');
UPDATE rota_jobs SET attempt = max(attempt, 0), max_attempts = max(max_attempts, 1), crashes = max(crashes, 0)
WHERE attempt < 0 OR max_attempts < 1 OR crashes < 0;
UPDATE rota_attempts SET attempt = 0 WHERE attempt < 0;

-- SQLite adds a constraint only together with a column; these take no room. IN would build a list in every
-- statement, which costs a sixth of an insert.
ALTER TABLE rota_jobs ADD COLUMN check_state INTEGER GENERATED ALWAYS AS (1) VIRTUAL
  CONSTRAINT state_is_waiting_queued_running_succeeded_failed_or_cancelled
  CHECK (state = 'queued' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state = 'cancelled'
    OR state = 'waiting');
ALTER TABLE rota_jobs ADD COLUMN check_attempt INTEGER GENERATED ALWAYS AS (1) VIRTUAL
  CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0);
ALTER TABLE rota_jobs ADD COLUMN check_max_attempts INTEGER GENERATED ALWAYS AS (1) VIRTUAL
  CONSTRAINT max_attempts_is_at_least_1 CHECK (max_attempts >= 1);
ALTER TABLE rota_jobs ADD COLUMN check_crashes INTEGER GENERATED ALWAYS AS (1) VIRTUAL
  CONSTRAINT crashes_are_not_negative CHECK (crashes >= 0);
ALTER TABLE rota_attempts ADD COLUMN check_attempt INTEGER GENERATED ALWAYS AS (1) VIRTUAL
  CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0);
