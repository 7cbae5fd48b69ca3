-- Overrides for PostgreSQL, each saying why it differs.

-- name: delivery_candidates_beside
-- Differs because there is no instr() here.
SELECT id, lane FROM delivery WHERE state = 'pending' AND next_try_at <= :now
AND strpos(:lanes, '|' || lane || '|') = 0
ORDER BY next_try_at LIMIT :room FOR UPDATE OF delivery SKIP LOCKED;
