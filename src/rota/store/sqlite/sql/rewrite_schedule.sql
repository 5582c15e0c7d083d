UPDATE OR IGNORE rota_schedules SET ({schedule}) = ({schedule values}) WHERE id = ? AND version = ?
