INSERT INTO rota_schedules ({schedule}) VALUES ({schedule values}) ON CONFLICT DO NOTHING
