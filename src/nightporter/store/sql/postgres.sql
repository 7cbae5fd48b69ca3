-- Overrides for PostgreSQL, each saying why it differs.

-- name: delivery_candidates_beside
-- Differs because there is no instr() here.
SELECT id, lane FROM delivery WHERE state = 'pending' AND next_try_at <= :now
AND strpos(:lanes, '|' || lane || '|') = 0
ORDER BY next_try_at LIMIT :room FOR UPDATE OF delivery SKIP LOCKED;

-- name: claim_facts
-- Differs because a claim and a stop may be under way at once: claims share a lock that a stop has alone. A claim that
-- does not get it takes the desk for stopped, and a stop waits for the claims before it, so that it finds what they
-- start. What stopped the desk before the lock was had, and after this statement began, is seen by the next one.
SELECT NOT pg_try_advisory_xact_lock_shared(7110462209113003) OR EXISTS (SELECT 1 FROM setting WHERE key = 'stopped'),
       NOT EXISTS (SELECT 1 FROM worker WHERE id = :worker AND ended_at IS NULL),
       EXISTS (SELECT 1 FROM run WHERE blocked = 'time' AND run_after <= :now);

-- name: names_lock
-- Differs because two desks that start at once would both find that an automation is not there, and both make it.
SELECT pg_advisory_xact_lock(7110462209113004);

-- name: desk_stop
-- Differs because it waits for the claims that are under way, see `claim_facts`.
WITH alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(7110462209113003))
INSERT INTO setting (key, value) SELECT 'stopped', :value FROM alone
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: audit_integrity
-- Differs because the server checks its own pages when it reads them; what it may leave behind is an index not built
-- to its end.
SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready) ORDER BY 1 LIMIT 10;
