-- Delivery: an ended run's result on its way to each destination.

-- name: delivery_create
INSERT INTO delivery (id, run_id, automation_id, workspace, destination, kind, lane, state, reason, best_effort,
                      event_id, next_try_at, created_at, ended_at, evidence)
SELECT r.id, r.run_id, r.automation_id, r.workspace, r.destination, r.kind, r.lane, r.state, r.reason,
       r.best_effort, r.event_id, r.next_try_at, :now, r.ended_at, r.evidence
FROM @rows(id text, run_id text, automation_id text, workspace text, destination text, kind text, lane text,
           state text, reason text, best_effort int, event_id text, next_try_at int, ended_at int, evidence text)
           AS r;

-- name: delivery_next
SELECT min(next_try_at) FROM delivery WHERE state = 'pending';

-- name: delivery_candidates
SELECT id, lane FROM delivery WHERE state = 'pending' AND next_try_at <= :now
ORDER BY next_try_at LIMIT :room @lock_free(delivery);

-- name: delivery_candidates_beside
-- The same, passing over lanes that are already full: one slow receiver holds up nobody else.
SELECT id, lane FROM delivery WHERE state = 'pending' AND next_try_at <= :now
AND instr(:lanes, '|' || lane || '|') = 0
ORDER BY next_try_at LIMIT :room @lock_free(delivery);

-- name: delivery_send  pending -> sending
UPDATE delivery SET state = 'sending', worker = :worker, token = delivery.token + 1, tries = delivery.tries + 1
FROM @rows(id text) AS r WHERE delivery.id = r.id AND delivery.state = 'pending'
RETURNING delivery.id, delivery.run_id, delivery.kind, delivery.lane, delivery.destination, delivery.event_id,
          delivery.tries, delivery.token, delivery.best_effort, delivery.workspace, delivery.automation_id,
          delivery.tries_before, delivery.alert;

-- name: delivery_end  sending -> delivered | unverified | given_up | unknown
UPDATE delivery SET state = r.state, reason = r.reason, ended_at = :now, evidence = r.evidence, error = r.error,
       next_try_at = NULL
FROM @rows(id text, token int, state text, reason text, evidence text, error text) AS r
WHERE delivery.id = r.id AND delivery.state = 'sending' AND delivery.token = r.token
RETURNING delivery.id;

-- name: delivery_defer  sending -> pending
UPDATE delivery SET state = 'pending', reason = r.reason, next_try_at = r.next_try_at, error = r.error
FROM @rows(id text, token int, next_try_at int, reason text, error text) AS r
WHERE delivery.id = r.id AND delivery.state = 'sending' AND delivery.token = r.token
RETURNING delivery.id;

-- name: delivery_of_lanes
-- What waits for its next try at these receivers, the oldest first; more than a thousand keep their times.
SELECT d.id, d.lane FROM @rows(lane text) AS r JOIN delivery d ON d.lane = r.lane
WHERE d.state = 'pending' AND d.next_try_at > :now AND d.reason = 'unreachable'
ORDER BY d.created_at, d.id LIMIT 1000 @lock_free(d);

-- name: delivery_hasten
UPDATE delivery SET next_try_at = r.at FROM @rows(id text, at int) AS r
WHERE delivery.id = r.id AND delivery.state = 'pending' AND delivery.next_try_at > r.at;

-- name: delivery_release  sending -> pending
-- Nothing was sent: the try is given back, and what is said of those before stands, unless it waits for a reason of its
-- own. The token goes on growing.
UPDATE delivery SET state = 'pending', tries = delivery.tries - 1, next_try_at = r.next_try_at,
       reason = coalesce(r.reason, delivery.reason)
FROM @rows(id text, token int, next_try_at int, reason text) AS r
WHERE delivery.id = r.id AND delivery.state = 'sending' AND delivery.token = r.token
RETURNING delivery.id;

-- name: delivery_destination
SELECT automation_id, destination, kind FROM delivery WHERE id = :id;

-- name: delivery_resend  given_up | unknown | unverified -> pending
-- One that waits for its next try goes at once, and where the definition says by now.
UPDATE delivery SET state = 'pending', reason = NULL, next_try_at = :now, ended_at = NULL, tries_before = delivery.tries,
       lane = coalesce(:lane, delivery.lane), closed_at = NULL, closed_by = ''
WHERE id = :id AND (state IN ('given_up', 'unknown', 'unverified') OR state = 'pending' AND tries > 0);

-- name: delivery_try_write
INSERT INTO delivery_try (delivery_id, n, at, result, status, event_id, body_hash, error)
SELECT r.delivery_id, r.n, :now, r.result, r.status, r.event_id, r.body_hash, r.error
FROM @rows(delivery_id text, n int, result text, status int, event_id text, body_hash text, error text) AS r;

-- name: delivery_result
-- Everything a body is made of. None of it changes after the run has ended.
SELECT run.id, run.automation_id, run.version, run.state, run.outcome, run.reason, run.error, run.exit_code,
       run.attempt, run.scheduled_for, run.queued_at, run.started_at, run.ended_at, run.ran_late, run.source,
       o.text, o.data
FROM @rows(run_id text) AS r
JOIN run ON run.id = r.run_id
LEFT JOIN run_output o ON o.run_id = run.id;

-- name: inbox_write
INSERT INTO inbox (id, workspace, owner, automation_id, run_id, kind, title, text, created_at)
SELECT r.id, r.workspace, r.owner, r.automation_id, r.run_id, r.kind, r.title, r.text, :now
FROM @rows(id text, workspace text, owner text, automation_id text, run_id text, kind text, title text, text text)
     AS r WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: inbox_fold
-- Results of one destination's quiet hours are one message, unread again with each.
INSERT INTO inbox (id, workspace, owner, automation_id, run_id, kind, title, text, created_at)
SELECT r.id, r.workspace, r.owner, r.automation_id, r.run_id, 'result', r.title, r.text, :now
FROM @rows(id text, workspace text, owner text, automation_id text, run_id text, title text, text text) AS r WHERE true
ON CONFLICT (id) DO UPDATE SET text = inbox.text || excluded.text, read_at = NULL
WHERE length(inbox.text) + length(excluded.text) <= 20000
RETURNING id;

-- name: inbox_gather
-- What belongs together is one message, unread again with each, and its title is the latest. Of results that were given
-- up each is named, while there is room; of an incident the latest text says all.
INSERT INTO inbox (id, workspace, owner, automation_id, run_id, kind, title, text, created_at)
SELECT r.id, r.workspace, r.owner, r.automation_id, r.run_id, r.kind, r.title, r.text, :now
FROM @rows(id text, workspace text, owner text, automation_id text, run_id text, kind text, title text, text text)
     AS r WHERE true
ON CONFLICT (id) DO UPDATE SET title = excluded.title, read_at = NULL, text =
    CASE excluded.kind WHEN 'given_up' THEN inbox.text || excluded.text ELSE excluded.text END
WHERE excluded.kind <> 'given_up' OR length(inbox.text) + length(excluded.text) <= 20000
RETURNING id;

-- name: inbox_last_of
-- The latest that goes on where a message was full.
SELECT max(id) FROM inbox WHERE id > :first AND id < :beyond;

-- name: inbox_unread
SELECT id, kind, title, text, automation_id, run_id, created_at FROM inbox WHERE read_at IS NULL
ORDER BY created_at LIMIT :room;

-- name: inbox_read
UPDATE inbox SET read_at = :now FROM @rows(id text) AS r WHERE inbox.id = r.id AND inbox.read_at IS NULL;
