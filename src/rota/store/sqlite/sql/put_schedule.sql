INSERT INTO rota_schedules ({schedule}) VALUES ({schedule_values}) ON CONFLICT DO NOTHING
