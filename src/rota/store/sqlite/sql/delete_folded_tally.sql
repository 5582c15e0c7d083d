DELETE FROM rota_tally WHERE minute < ? AND (minute % 1440 <> 0 OR n = 0)
