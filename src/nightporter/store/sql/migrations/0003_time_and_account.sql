-- Time in full, failures told once, and the account of what did not happen.

-- gates: what a trigger has counted
ALTER TABLE trigger ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;   -- arrivals since its threshold last let one through
