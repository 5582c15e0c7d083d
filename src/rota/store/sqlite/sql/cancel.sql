UPDATE rota_jobs SET state = 'cancelled', error_json = ?, finished_at = ?, slot = NULL WHERE id = ?
