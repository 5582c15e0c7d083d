-- Less than nothing: uncounted after its minute had been folded into a day.
SELECT minute, queue, task, state, n FROM rota_tally
WHERE state IN ('succeeded', 'failed', 'cancelled', 'removed') AND minute >= ? AND minute < ? AND n > 0
ORDER BY minute, queue, task, state
