UPDATE OR IGNORE rota_schedules SET ({schedule}) = ({schedule values}) WHERE id = ? AND version = ? AND enabled = 1
