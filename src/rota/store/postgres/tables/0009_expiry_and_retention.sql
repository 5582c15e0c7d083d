-- When a job that has not begun is cancelled, how long it is kept once it has finished, how often it was
-- snoozed (NULL: never).
ALTER TABLE rota.queued ADD COLUMN expires_at timestamptz;
ALTER TABLE rota.queued ADD COLUMN keep double precision;
ALTER TABLE rota.queued ADD COLUMN snoozes integer;
ALTER TABLE rota.running ADD COLUMN expires_at timestamptz;
ALTER TABLE rota.running ADD COLUMN keep double precision;
ALTER TABLE rota.running ADD COLUMN snoozes integer;
ALTER TABLE rota.done ADD COLUMN expires_at timestamptz;
ALTER TABLE rota.done ADD COLUMN keep double precision;
ALTER TABLE rota.done ADD COLUMN snoozes integer;
-- Only jobs that expire, or that have a retention of their own, pay for these.
CREATE INDEX queued_expires ON rota.queued (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX done_keep ON rota.done (keep, finished_at) WHERE keep IS NOT NULL;
-- The default partition also receives the jobs that outlive their day: the others in it must be found without them.
CREATE INDEX done_default_by_settings ON rota.done_default (state, finished_at) WHERE keep IS NULL;
