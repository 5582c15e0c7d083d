SELECT
  coalesce((SELECT sum(amount) FROM rota_spending WHERE tenant = :tenant AND unit = :unit AND begins >= :begins), 0.0)
  + coalesce((
    SELECT sum(price) FROM rota_jobs INDEXED BY rota_jobs_priced
    WHERE state = 'running' AND price IS NOT NULL AND tenant = :tenant
  ), 0.0)
