-- Rows of schedules that are written by hand: a next run that was set is a fire whatever the rule says.
ALTER TABLE rota.schedules ADD COLUMN manual_run_at timestamptz;

CREATE TRIGGER schedule_added BEFORE INSERT ON rota.schedules
   FOR EACH ROW EXECUTE FUNCTION rota.schedule_added();
