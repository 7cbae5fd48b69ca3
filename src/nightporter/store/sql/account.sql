-- The account of the desk itself: what is not as it should be, what was said of it, and the daily heartbeat.

-- name: task_queued
-- Runs that could have been claimed for so long: they wait for no time, nobody before them, no ceiling and no pause.
SELECT q.*, count(*) OVER () FROM (
    SELECT run.id, a.name, CASE WHEN run.run_after > run.queued_at THEN run.run_after ELSE run.queued_at END AS since,
           run.runner
    FROM run LEFT JOIN automation a ON a.id = run.automation_id
    WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'queued'
      AND (run.blocked IS NULL OR run.blocked = 'time') AND run.queued_at < :before AND run.run_after < :before
) AS q ORDER BY 3, 1 LIMIT :room;

-- name: task_lost
-- Runs whose worker is gone, and that nobody has decided about.
SELECT q.*, count(*) OVER () FROM (
    SELECT run.id, a.name, t.at, run.state FROM run LEFT JOIN automation a ON a.id = run.automation_id
    LEFT JOIN transition t ON t.run_id = run.id AND t.seq = run.seq
    WHERE run.state IN ('lost', 'review', 'held') AND (run.state = 'review' OR (run.state = 'lost' AND t.at < :before))
    UNION ALL
    SELECT run.id, a.name, w.ended_at, run.state FROM run LEFT JOIN automation a ON a.id = run.automation_id
    JOIN worker w ON w.id = run.worker
    WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running' AND w.ended_at < :before
) AS q ORDER BY 3, 1 LIMIT :room;

-- name: task_delivery_failed
SELECT q.*, count(*) OVER () FROM (
    SELECT d.run_id, a.name, d.ended_at, d.destination, d.state, d.error, d.id
    FROM delivery d LEFT JOIN automation a ON a.id = d.automation_id
    WHERE d.state IN ('given_up', 'unknown') AND d.best_effort = 0
) AS q ORDER BY 3 DESC, 1 LIMIT :room;

-- name: task_cleanup
-- What workers that ended left behind, and nobody took back.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.ended_at, w.ended_how,
           (SELECT count(*) FROM run WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running'
            AND run.worker = w.id) AS runs,
           (SELECT count(*) FROM delivery d WHERE d.state = 'sending' AND d.worker = w.id) AS sending
    FROM worker w WHERE w.ended_at < :before
) AS q WHERE q.runs > 0 OR q.sending > 0 ORDER BY 2, 1 LIMIT :room;

-- name: task_children
-- Children of runs that have ended, on this machine; whether they live, the machine knows.
SELECT c.run_id, c.process_group, c.started, run.ended_at FROM child c JOIN run ON run.id = c.run_id
WHERE c.host = :host AND run.ended_at < :before ORDER BY c.run_id LIMIT :room;

-- name: flags
SELECT kind, subject, at FROM flag ORDER BY kind, subject;

-- name: flag_raise
INSERT INTO flag (kind, subject, at) SELECT r.kind, r.subject, :now FROM @rows(kind text, subject text) AS r WHERE true
ON CONFLICT (kind, subject) DO NOTHING RETURNING kind, subject;

-- name: flag_drop
DELETE FROM flag WHERE (kind, subject) IN (SELECT r.kind, r.subject FROM @rows(kind text, subject text) AS r);

-- name: worker_drains
UPDATE worker SET draining_at = :now WHERE id = :id AND draining_at IS NULL;

-- name: workers_draining
SELECT id, draining_at FROM worker WHERE ended_at IS NULL AND draining_at IS NOT NULL;

-- name: task_overdue
-- Armed slots that have passed.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, a.name, t.next_fire_at FROM trigger t JOIN automation a ON a.id = t.automation_id
    WHERE t.next_fire_at IS NOT NULL AND t.next_fire_at < :before
) AS q ORDER BY 3, 1 LIMIT :room;

-- name: waits_for_a_person
-- What nothing but a person's word moves, since when.
SELECT q.*, count(*) OVER () FROM (
    SELECT 'review' AS what, run.id, a.name, t.at, run.workspace, run.automation_id FROM run LEFT JOIN automation a ON a.id = run.automation_id
    JOIN transition t ON t.run_id = run.id AND t.seq = run.seq
    WHERE run.state IN ('lost', 'review', 'held') AND run.state = 'review' AND t.at < :before
    UNION ALL
    SELECT 'proposal', a.id, a.name, a.state_at, a.workspace, a.id FROM automation a
    WHERE a.state = 'proposed' AND a.state_at < :before
) AS q ORDER BY 4, 2 LIMIT :room;
