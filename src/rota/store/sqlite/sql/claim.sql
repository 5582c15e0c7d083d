UPDATE rota_jobs SET
  state = 'running', lease_token = lease_token + 1, attempt = attempt + 1, worker = ?, lease_until = ?, started_at = ?
WHERE rowid IN (SELECT value FROM json_each(?))
