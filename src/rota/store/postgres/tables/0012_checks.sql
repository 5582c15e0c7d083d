-- What no program of ours writes, and no hand should: a state that does not exist, attempts below zero.
-- NOT VALID: rows that are there already are not read, so that this takes no time.
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
