-- What no program of ours writes, and no hand should: a state that does not exist, attempts below zero.
-- What a hand wrote before is put right first where it would stop others: one row that may not be moved to the
-- next table would refuse the whole batch it is in.
UPDATE rota.queued SET attempt = greatest(attempt, 0), crashes = greatest(crashes, 0)
 WHERE attempt < 0 OR crashes < 0;
UPDATE rota.running SET
    attempt = greatest(attempt, 0), max_attempts = greatest(max_attempts, 1), crashes = greatest(crashes, 0)
 WHERE attempt < 0 OR max_attempts < 1 OR crashes < 0;
-- NOT VALID: the history, which stays where it is, is not read.
ALTER TABLE rota.queued ADD CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0) NOT VALID;
ALTER TABLE rota.queued ADD CONSTRAINT crashes_are_not_negative CHECK (crashes >= 0) NOT VALID;
ALTER TABLE rota.running ADD CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0) NOT VALID;
ALTER TABLE rota.running ADD CONSTRAINT max_attempts_is_at_least_1 CHECK (max_attempts >= 1) NOT VALID;
ALTER TABLE rota.running ADD CONSTRAINT crashes_are_not_negative CHECK (crashes >= 0) NOT VALID;
ALTER TABLE rota.done ADD CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0) NOT VALID;
ALTER TABLE rota.done ADD CONSTRAINT max_attempts_is_at_least_1 CHECK (max_attempts >= 1) NOT VALID;
ALTER TABLE rota.done ADD CONSTRAINT crashes_are_not_negative CHECK (crashes >= 0) NOT VALID;
ALTER TABLE rota.done ADD CONSTRAINT state_is_succeeded_failed_or_cancelled
    CHECK (state IN ('succeeded', 'failed', 'cancelled')) NOT VALID;
ALTER TABLE rota.attempts ADD CONSTRAINT attempt_is_not_negative CHECK (attempt >= 0) NOT VALID;
