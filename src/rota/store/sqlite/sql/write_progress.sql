UPDATE rota_jobs SET progress_json = ? WHERE id = ? AND lease_token = ? AND worker = ? AND state = 'running'
