SELECT min(run_at) FROM rota_jobs INDEXED BY rota_jobs_later WHERE state = 'queued' AND due = 0
