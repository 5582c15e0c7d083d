-- All rows as one text: to fetch them one by one would take longer, and a switch of threads each.
SELECT json_group_array(json_array({own}, json_array({shared})))
FROM rota_jobs WHERE rowid IN (SELECT value FROM json_each(?))
