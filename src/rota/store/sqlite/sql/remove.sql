DELETE FROM rota_jobs WHERE id = ? AND token = ? AND state = 'running' RETURNING queue, task
