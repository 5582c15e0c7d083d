UPDATE rota_jobs SET
  due = coalesce(?, due), run_at = coalesce(?, run_at), rank = coalesce(?, rank), queue = coalesce(?, queue)
WHERE id = ?
