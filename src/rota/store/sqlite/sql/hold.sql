UPDATE rota_jobs SET due = 2, lane = json_extract(moved.value, '$[1]')
FROM json_each(?) AS moved
WHERE rota_jobs.rowid = json_extract(moved.value, '$[0]')
