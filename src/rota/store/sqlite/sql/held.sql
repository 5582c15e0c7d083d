-- Which of the changes may be carried out, by lane: their jobs run, and under the given token.
SELECT queue, task, json_group_array(held.id)
FROM json_each(?) AS change CROSS JOIN rota_jobs AS held INDEXED BY rota_jobs_id
WHERE held.id = change.key AND held.token = json_extract(change.value, '$[0]') AND held.state = 'running'
GROUP BY queue, task
