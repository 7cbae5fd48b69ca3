-- Overrides for SQLite, each saying why it differs.

-- name: store_check
-- Differs because the file is ours to check. Reads every page but compares no index with its table.
SELECT quick_check FROM pragma_quick_check LIMIT 1;

-- name: audit_integrity
-- Differs because the file is ours to check: every page, and every index against its table.
SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok' LIMIT 10;
