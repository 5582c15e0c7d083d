UPDATE rota_jobs SET cancel_requested = 1, error_json = coalesce(?, error_json) WHERE id = ?
