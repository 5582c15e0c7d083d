SELECT EXISTS (SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_held WHERE state = 'queued' AND due = 2)
