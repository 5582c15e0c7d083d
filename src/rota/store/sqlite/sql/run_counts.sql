SELECT tenant, schedule, max(sum(succeeded), 0), max(sum(failed), 0), max(sum(cancelled), 0), sum(timed), sum(total_us) / 1000.0,
  max(longest_us) / 1000.0
FROM json_each(?) CROSS JOIN rota_run_counts
WHERE tenant = json_extract(value, '$[0]') AND schedule = json_extract(value, '$[1]') AND day >= ?
GROUP BY 1, 2 ORDER BY 1, 2
