-- Workers, leases, and what the sweep repairs.

-- name: setting_get
SELECT value FROM setting WHERE key = :key;

-- name: setting_put
INSERT INTO setting (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: setting_hold
-- What it says stands; nobody else writes it before the commit.
INSERT INTO setting (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = setting.value;

-- name: setting_drop
DELETE FROM setting WHERE key = :key RETURNING value;

-- name: desk_stop
-- Before the runs are read that are asked to end: no claim may come between.
INSERT INTO setting (key, value) VALUES ('stopped', :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: worker_join
INSERT INTO worker (id, role, host, pid, beat, lock_path, started_at)
VALUES (:id, :role, :host, :pid, 0, :lock_path, :now);

-- name: worker_beat
UPDATE worker SET beat = beat + 1 WHERE id = :id AND ended_at IS NULL;

-- name: worker_end
UPDATE worker SET ended_at = :now, ended_how = :how WHERE id = :id AND ended_at IS NULL;

-- name: worker_ended
-- Maybe so long ago that nothing is known of it any more.
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM worker WHERE id = :id AND ended_at IS NULL);

-- name: workers_alive
SELECT id, role, host, pid, beat, lock_path, started_at FROM worker WHERE ended_at IS NULL ORDER BY id;

-- name: leader
-- Whose lead it is. That of a worker that has ended is nobody's.
SELECT w.id FROM setting s JOIN worker w ON w.id = s.value AND w.ended_at IS NULL WHERE s.key = 'leader';

-- name: lead_take
-- For a worker that has not ended, and only what is free or its own already.
INSERT INTO setting (key, value)
SELECT 'leader', w.id FROM worker w WHERE w.id = :worker AND w.ended_at IS NULL
ON CONFLICT (key) DO UPDATE SET value = excluded.value
WHERE setting.value = excluded.value
   OR NOT EXISTS (SELECT 1 FROM worker h WHERE h.id = setting.value AND h.ended_at IS NULL);

-- name: lead_leave
DELETE FROM setting WHERE key = 'leader' AND value = :worker;

-- name: workers_owing
-- Ended workers that still hold something: a sweeper died between declaring them dead and taking it back.
SELECT DISTINCT run.worker FROM run WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running'
    AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = run.worker AND w.ended_at IS NULL)
UNION
SELECT DISTINCT d.worker FROM delivery d WHERE d.state = 'sending'
    AND NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = d.worker AND w.ended_at IS NULL);

-- name: run_of_worker
-- What a dead worker held. Not locked: its automations are, next, and taking it away is fenced by the token.
SELECT run.id, run.automation_id, run.token, run.attempt, run.attempts, run.version, run.runner, run.workspace,
       run.cancel_reason, run.cancel_by, run.source
FROM run WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running' AND run.worker = :worker
ORDER BY run.id LIMIT :room;

-- name: run_lose  running -> lost
UPDATE run SET state = 'lost', seq = run.seq + 1, reason = 'worker_lost', error_class = 'worker_lost'
FROM @rows(id text, token int) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token
RETURNING run.id, run.seq, run.reason, run.worker;

-- name: run_requeue  lost | review -> queued
-- Whoever asked to cancel it asked of the attempt that is gone.
UPDATE run SET state = 'queued', blocked = NULL, seq = run.seq + 1, run_after = :now, reason = NULL,
       cancel_at = NULL, cancel_by = '', cancel_reason = NULL,
       rank = :now + run.priority * 10000000, attempts = CASE WHEN run.attempts > run.attempt THEN run.attempts
                                                              ELSE run.attempt + 1 END
FROM @rows(id text) AS r
WHERE run.id = r.id AND run.state IN ('lost', 'review')
RETURNING run.id, run.seq, run.token, run.attempt, run.automation_id;

-- name: run_to_review  lost -> review
UPDATE run SET state = 'review', seq = run.seq + 1, error = r.error
FROM @rows(id text, error text) AS r WHERE run.id = r.id AND run.state = 'lost'
RETURNING run.id, run.seq, run.token, run.attempt;

-- name: run_abandon  lost -> failed
UPDATE run SET state = 'failed', seq = run.seq + 1, ended_at = :now, outcome = 'failed', error = r.error,
       dead_at = :now
FROM @rows(id text, error text) AS r WHERE run.id = r.id AND run.state = 'lost'
RETURNING run.id, run.seq, run.token, run.attempt;

-- name: run_dismiss  review -> failed
UPDATE run SET state = 'failed', seq = run.seq + 1, ended_at = :now, reason = :reason
FROM @rows(id text) AS r WHERE run.id = r.id AND run.state = 'review'
RETURNING run.id, run.seq, run.token, run.attempt;

-- name: child_of_worker
SELECT run_id, token, host, process_group, started FROM child WHERE worker = :worker;

-- name: children
-- Whether a child was let go under these claims. That of a look does nothing.
SELECT child.run_id, child.token FROM @rows(run_id text, token int) AS r
JOIN child ON child.run_id = r.run_id AND child.token = r.token WHERE child.look = 0;

-- name: delivery_of_worker
SELECT id, token, kind, tries, best_effort, run_id, automation_id, workspace, destination, alert
FROM delivery WHERE worker = :worker AND state = 'sending' ORDER BY id LIMIT :room @lock(delivery);

-- name: quarantine_write
INSERT INTO quarantine (subject, key, error, at) VALUES (:subject, :key, :error, :now)
ON CONFLICT (subject, key) DO NOTHING;

-- name: quarantine_release
DELETE FROM quarantine WHERE subject = :subject AND key = :key;

-- name: pause_due
-- Pauses with an end that has come.
SELECT id FROM automation WHERE state = 'paused' AND state_until <= :now ORDER BY state_until LIMIT :room;

-- name: automation_expired
SELECT id FROM automation WHERE state = 'active' AND expires <= :now ORDER BY expires LIMIT :room;

-- name: prunable_runs
-- Ended runs of before the bound whose deliveries have ended and that nobody still has to look at: a dead letter stays
-- until its message was read. That is found by its time, for which there is an index.
SELECT run.id FROM run
WHERE run.id > :after AND run.id < :bound AND run.ended_at IS NOT NULL AND run.ended_at < :before
  AND (run.dead_at IS NULL OR (run.dead_at < :dead_before AND NOT EXISTS (
      SELECT 1 FROM inbox i WHERE i.read_at IS NULL AND i.run_id = run.id AND i.kind = 'dead_letter'
      AND i.created_at BETWEEN run.dead_at - 60000000 AND run.dead_at + 60000000)))
  AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.run_id = run.id AND d.state IN ('pending', 'sending'))
ORDER BY run.id LIMIT :room;

-- name: prunable_still
-- The same of these, as they are now. In the order of ids: several desks prune, and shall not wait in a ring.
SELECT run.id FROM @rows(id text) AS r JOIN run ON run.id = r.id
WHERE run.ended_at IS NOT NULL AND run.ended_at < :before
  AND (run.dead_at IS NULL OR (run.dead_at < :dead_before AND NOT EXISTS (
      SELECT 1 FROM inbox i WHERE i.read_at IS NULL AND i.run_id = run.id AND i.kind = 'dead_letter'
      AND i.created_at BETWEEN run.dead_at - 60000000 AND run.dead_at + 60000000)))
ORDER BY run.id @lock(run);

-- name: prune_hold
-- What somebody sends again in this moment is waited for, and then it stays.
SELECT delivery.run_id, delivery.state FROM @rows(id text) AS r JOIN delivery ON delivery.run_id = r.id
ORDER BY delivery.id @lock(delivery);

-- name: prune_run
DELETE FROM run WHERE id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_output
DELETE FROM run_output WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_looks
DELETE FROM run_look WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_children
DELETE FROM child WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_effects
DELETE FROM effect WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_tries
DELETE FROM delivery_try WHERE delivery_id IN (SELECT d.id FROM delivery d JOIN @rows(id text) AS r ON d.run_id = r.id);

-- name: prune_deliveries
DELETE FROM delivery WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prunable_logs
-- A log goes whole, once its run is gone and the last of its lines has passed its time.
SELECT DISTINCT t.run_id FROM transition t WHERE t.run_id > :after AND t.run_id < :bound
AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = t.run_id)
AND NOT EXISTS (SELECT 1 FROM transition l WHERE l.run_id = t.run_id AND l.at >= :before)
ORDER BY t.run_id LIMIT :room;

-- name: prune_transitions
DELETE FROM transition WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prunable_payloads
SELECT p.firing_id FROM firing_payload p WHERE p.firing_id > :after AND p.firing_id < :bound
AND NOT EXISTS (SELECT 1 FROM firing f JOIN run ON run.id = f.run_id WHERE f.id = p.firing_id)
ORDER BY p.firing_id LIMIT :room;

-- name: prune_payloads
DELETE FROM firing_payload WHERE firing_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prunable_firings
SELECT f.id FROM firing f WHERE f.id > :after AND f.id < :bound
AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = f.run_id)
ORDER BY f.id LIMIT :room;

-- name: prune_firings
DELETE FROM firing WHERE id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_read
-- A message stays as long as the run it tells of: what waits for a person, or failed for good, was announced.
DELETE FROM inbox WHERE id IN (
    SELECT i.id FROM inbox i WHERE i.read_at < :before
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = i.run_id)
    LIMIT :room);

-- name: prune_unread
DELETE FROM inbox WHERE id IN (
    SELECT i.id FROM inbox i WHERE i.read_at IS NULL AND i.created_at < :before
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = i.run_id)
    LIMIT :room);

-- name: prune_workers
DELETE FROM worker WHERE ended_at < :before
  AND NOT EXISTS (SELECT 1 FROM run WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running'
                  AND run.worker = worker.id);
