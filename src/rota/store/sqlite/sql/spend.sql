INSERT INTO rota_spending (tenant, unit, begins, amount) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount
