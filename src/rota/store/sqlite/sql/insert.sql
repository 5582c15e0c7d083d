INSERT INTO rota_jobs (state, {columns}) VALUES
  {rows}
ON CONFLICT DO NOTHING
