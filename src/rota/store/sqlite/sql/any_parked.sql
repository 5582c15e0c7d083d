SELECT NULL, NULL, NULL, NULL, NULL
WHERE EXISTS (SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_parked WHERE state = 'queued' AND due = 2)
