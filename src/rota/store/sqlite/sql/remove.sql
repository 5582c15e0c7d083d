DELETE FROM rota_jobs WHERE rowid IN (
  SELECT held.rowid
  FROM json_each(?1) AS change CROSS JOIN rota_jobs AS held INDEXED BY rota_jobs_id
  WHERE held.id = json_extract(change.value, '$[0]')
    AND held.token = json_extract(change.value, '$[1]')
    AND held.state = 'running'
)
RETURNING id, queue, task
