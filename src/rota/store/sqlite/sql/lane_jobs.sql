SELECT json_group_array(json_array({met})) FROM (
  SELECT {met} FROM rota_jobs INDEXED BY rota_jobs_held
  WHERE state = 'queued' AND due = 2 AND queue = ? AND tenant = ? AND lane = ? AND task = ?
  ORDER BY rank, run_at, id
  LIMIT ?
)
