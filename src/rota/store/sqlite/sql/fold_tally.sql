INSERT INTO rota_tally (state, minute, queue, task, n)
SELECT state, minute - minute % 1440, queue, task, sum(n) FROM rota_tally
WHERE minute < ? AND minute % 1440 <> 0
GROUP BY state, minute - minute % 1440, queue, task
ON CONFLICT DO UPDATE SET n = n + excluded.n
