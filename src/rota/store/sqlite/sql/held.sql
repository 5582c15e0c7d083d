-- Which of the changes may be carried out: their jobs run under the given token, held by the given worker.
SELECT json_group_array(held.id)
FROM json_each(?) AS change CROSS JOIN rota_jobs AS held INDEXED BY rota_jobs_id
WHERE held.id = change.key AND {held}
