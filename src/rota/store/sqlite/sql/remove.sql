DELETE FROM rota_jobs AS held
WHERE id IN (SELECT key FROM json_each(?1))
  AND EXISTS (SELECT 1 FROM json_each(?1) AS change WHERE held.id = change.key AND {held})
