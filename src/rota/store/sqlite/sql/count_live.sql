SELECT count(*) FROM (SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_live WHERE finished_at IS NULL LIMIT ?)
