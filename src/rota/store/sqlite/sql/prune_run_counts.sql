DELETE FROM rota_run_counts WHERE day < ?
