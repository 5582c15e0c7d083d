UPDATE OR IGNORE rota_schedules SET ({schedule}) = ({schedule_values}) WHERE id = ? AND version = ?
