SELECT id FROM rota_jobs WHERE worker = ? AND state = 'running' AND cancel_requested = 1
