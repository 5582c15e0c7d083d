INSERT INTO rota_tally (state, minute, queue, task, n) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET n = n + excluded.n
