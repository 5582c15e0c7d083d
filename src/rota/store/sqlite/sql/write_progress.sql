UPDATE rota_jobs SET progress_json = ? WHERE id = ? AND token = ? AND worker = ? AND state = 'running'
