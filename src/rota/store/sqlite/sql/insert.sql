-- What is in brackets depends on the options that the jobs use: see statements.py.
INSERT INTO rota_jobs (state, [columns])
[rows]
ON CONFLICT DO NOTHING
