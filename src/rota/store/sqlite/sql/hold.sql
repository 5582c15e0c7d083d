UPDATE rota_jobs SET due = 2, lane = json_extract(held.value, '$[1]')
FROM json_each(?) AS held
WHERE rota_jobs.rowid = json_extract(held.value, '$[0]')
