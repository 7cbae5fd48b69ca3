-- Overrides for PostgreSQL, each saying why it differs.

-- name: delivery_candidates_beside
-- Differs because there is no instr() here.
SELECT id, lane FROM delivery WHERE state = 'pending' AND next_try_at <= :now
AND strpos(:lanes, '|' || lane || '|') = 0
ORDER BY next_try_at LIMIT :room FOR UPDATE OF delivery SKIP LOCKED;

-- name: audit_integrity
-- Differs because the server checks its own pages when it reads them; what it may leave behind is an index not built
-- to its end.
SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready) ORDER BY 1 LIMIT 10;
