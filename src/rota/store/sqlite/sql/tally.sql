SELECT state, sum(n) FROM rota_tally GROUP BY state
