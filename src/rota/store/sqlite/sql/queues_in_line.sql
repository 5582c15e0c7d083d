-- Those of these queues that have a due job in their line.
SELECT asked.value FROM json_each(?) AS asked
WHERE EXISTS (
  SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_ready
  WHERE state = 'queued' AND due = 1 AND rota_jobs.queue = asked.value
)
