UPDATE rota_jobs SET
  due = coalesce(?, min(due, 1)), run_at = coalesce(?, run_at), rank = coalesce(?, rank), queue = coalesce(?, queue),
  lane = {laned}
WHERE id = ?
