UPDATE rota_jobs SET cancel_requested = 1 WHERE id = ?
