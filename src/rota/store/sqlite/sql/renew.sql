UPDATE rota_jobs SET lease_until = ? WHERE id = ? AND token = ? AND state = 'running'
RETURNING cancel_requested
