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
    SELECT d.run_id, a.name, d.ended_at, d.destination, d.state, d.error, coalesce(d.alert, '')
    FROM delivery d LEFT JOIN automation a ON a.id = d.automation_id
    WHERE d.state IN ('given_up', 'unknown') AND d.best_effort = 0 AND d.closed_at IS NULL
) AS q ORDER BY 3 DESC, 1 LIMIT :room;

-- name: task_cleanup
-- What workers that ended left behind, and nobody took back.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.ended_at, w.ended_how, sum(h.runs), sum(h.sending)
    FROM (SELECT run.worker, 1 AS runs, 0 AS sending FROM run
          WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running'
          UNION ALL SELECT d.worker, 0, 1 FROM delivery d WHERE d.state = 'sending') AS h
    JOIN worker w ON w.id = h.worker WHERE w.ended_at < :before GROUP BY w.id, w.ended_at, w.ended_how
) AS q ORDER BY 2, 1 LIMIT :room;

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
    SELECT 'review' AS what, run.id, a.name, t.at, run.workspace, run.automation_id
    FROM run LEFT JOIN automation a ON a.id = run.automation_id JOIN transition t ON t.run_id = run.id AND t.seq = run.seq
    WHERE run.state IN ('lost', 'review', 'held') AND run.state = 'review' AND t.at < :before
    UNION ALL
    SELECT 'proposal', a.id, a.name, a.state_at, a.workspace, a.id FROM automation a
    WHERE a.state = 'proposed' AND a.state_at < :before
    UNION ALL
    SELECT 'missed', c.automation_id, min(a.name), min(c.created_at), min(c.workspace), c.automation_id
    FROM missed_card c JOIN automation a ON a.id = c.automation_id
    WHERE c.state = 'pending' AND c.created_at < :before GROUP BY c.automation_id
) AS q ORDER BY 4, 2 LIMIT :room;

-- name: heartbeat_last
SELECT slot, said_at, title, body FROM heartbeat ORDER BY slot DESC LIMIT 1;

-- name: heartbeat_say
-- Whoever writes the row of a day is the one that says it.
INSERT INTO heartbeat (slot, said_at, title, body) VALUES (:slot, :now, :title, :body) ON CONFLICT (slot) DO NOTHING;

-- name: heartbeat_to
INSERT INTO heartbeat_sent (slot, destination, state, next_try_at)
SELECT :slot, r.destination, 'pending', :now FROM @rows(destination text) AS r WHERE true
ON CONFLICT (slot, destination) DO NOTHING;

-- name: heartbeat_pending
SELECT s.slot, s.destination, s.tries, h.said_at, h.body FROM heartbeat_sent s JOIN heartbeat h ON h.slot = s.slot
WHERE s.state = 'pending' AND s.next_try_at <= :now ORDER BY s.slot, s.destination LIMIT 20;

-- name: heartbeat_tried
-- A try that another desk has made meanwhile stands.
UPDATE heartbeat_sent SET state = :state, tries = tries + 1, next_try_at = :next_try_at, ended_at = :ended_at,
       evidence = :evidence, error = :error
WHERE slot = :slot AND destination = :destination AND state = 'pending' AND tries = :tries;

-- name: heartbeat_prune
DELETE FROM heartbeat WHERE slot < :before;

-- name: heartbeat_sent_prune
DELETE FROM heartbeat_sent WHERE slot < :before;

-- name: heartbeat_runs
-- How runs ended in a span; ids begin with when they were due or asked for.
SELECT run.state, count(*) FROM run
WHERE run.id >= :floor AND run.ended_at > :since AND run.ended_at <= :until GROUP BY run.state ORDER BY run.state;

-- name: heartbeat_lines
-- What the ledger says of the arrivals of a span; the slots of a line that answers several are all counted.
SELECT f.verdict, coalesce(f.reason, ''), count(*), CAST(sum(coalesce(f.slots, 1)) AS bigint) FROM firing f
WHERE f.id >= :low AND f.id < :high AND f.verdict <> 'admitted' GROUP BY f.verdict, coalesce(f.reason, '') ORDER BY 1, 2;

-- name: heartbeat_stuck
-- Deliveries that were tried in vain and wait for another try; and those that were given up in a span.
SELECT (SELECT count(*) FROM delivery d WHERE d.state = 'pending' AND d.tries > 0),
       (SELECT count(*) FROM delivery d WHERE d.state IN ('given_up', 'unknown') AND d.ended_at > :since
        AND d.ended_at <= :until);

-- name: read_coming
-- The slots that come first.
SELECT a.name, t.name, t.next_fire_at, t.schedule FROM trigger t JOIN automation a ON a.id = t.automation_id
WHERE t.next_fire_at IS NOT NULL ORDER BY t.next_fire_at, a.name LIMIT :room;

-- name: read_incidents_open
SELECT state, count(*), min(first_at) FROM incident WHERE state <> 'resolved' GROUP BY state ORDER BY state;

-- name: read_cards_pending
SELECT count(*), min(created_at) FROM missed_card WHERE state = 'pending';

-- name: read_gaps
-- Spans in which the clock was not to be trusted, or nobody looked at it; the newest first.
SELECT kind, gap_from, gap_to FROM gap WHERE gap_to > :since ORDER BY gap_to DESC, gap_from, kind LIMIT :room;

-- name: read_calendar
-- Triggers of the clock that come again by themselves, or would if their automation were awake.
SELECT t.id, a.id, a.name, t.name, t.policy, t.schedule, t.next_fire_at, a.state, a.state_by, a.state_until,
       a.state_reason, a.counted_runs
FROM trigger t JOIN automation a ON a.id = t.automation_id
WHERE t.schedule IS NOT NULL AND t.removed_at IS NULL AND t.enabled = 1 AND t.error = ''
  AND a.state IN ('active', 'paused', 'auto_paused', 'config_error') AND (:automation_id = '' OR a.id = :automation_id)
ORDER BY t.id;
