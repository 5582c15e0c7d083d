-- The tenant that an actor is limited to; NULL: it acts for all tenants, and a tenant does not see its name.
ALTER TABLE rota.audit ADD COLUMN actor_tenant text COLLATE "C";
