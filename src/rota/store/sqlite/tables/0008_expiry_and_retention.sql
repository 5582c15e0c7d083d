-- When a job that has not begun is cancelled, how long it is kept once it has finished, how often it was snoozed.
ALTER TABLE rota_jobs ADD COLUMN expires_at INTEGER;
ALTER TABLE rota_jobs ADD COLUMN keep REAL;
ALTER TABLE rota_jobs ADD COLUMN snoozes INTEGER NOT NULL DEFAULT 0;
-- Only jobs that expire, or that have a retention of their own, pay for these.
CREATE INDEX rota_jobs_expires ON rota_jobs (expires_at) WHERE expires_at IS NOT NULL AND state = 'queued';
CREATE INDEX rota_jobs_keep ON rota_jobs (keep, finished_at) WHERE keep IS NOT NULL AND finished_at IS NOT NULL;
-- With the retention in it, those that are kept longer are passed over without being read.
DROP INDEX rota_jobs_finished;
CREATE INDEX rota_jobs_finished ON rota_jobs (state, finished_at, keep) WHERE finished_at IS NOT NULL;
