-- Rows that hold what no stage ever writes: an instant that is no date, a word that this program does not have. A hand,
-- another program or a bad disk did it. Each gives the row's key, and what it holds in the order of `tx_strange.STRANGE`.

-- name: strange_automation
SELECT id, state_at, state_until, expires, created_at, updated_at, last_started_at, last_success_at,
       last_failure_at, state FROM automation
WHERE NOT (state_at BETWEEN :first AND :last AND coalesce(state_until, 0) BETWEEN :first AND :last
           AND coalesce(expires, 0) BETWEEN :first AND :last AND created_at BETWEEN :first AND :last
           AND updated_at BETWEEN :first AND :last AND coalesce(last_started_at, 0) BETWEEN :first AND :last
           AND coalesce(last_success_at, 0) BETWEEN :first AND :last
           AND coalesce(last_failure_at, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || state || '|', '') <> :known) LIMIT :room;

-- name: strange_automation_version
SELECT automation_id, created_at FROM automation_version
WHERE NOT (created_at BETWEEN :first AND :last) LIMIT :room;

-- name: strange_trigger
SELECT id, next_fire_at, created_at, removed_at, last_fired_at, kind FROM trigger
WHERE NOT (coalesce(next_fire_at, 0) BETWEEN :first AND :last AND created_at BETWEEN :first AND :last
           AND coalesce(removed_at, 0) BETWEEN :first AND :last
           AND coalesce(last_fired_at, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || kind || '|', '') <> :known) LIMIT :room;

-- name: strange_trigger_version
SELECT trigger_id, valid_from, valid_to FROM trigger_version
WHERE NOT (valid_from BETWEEN :first AND :last AND coalesce(valid_to, 0) BETWEEN :first AND :last) LIMIT :room;

-- name: strange_pause
SELECT automation_id, paused_from, paused_to, reason FROM pause
WHERE NOT (paused_from BETWEEN :first AND :last AND coalesce(paused_to, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || reason || '|', '') <> :known) LIMIT :room;

-- name: strange_firing
SELECT id, scheduled_for, arrived_at, slot_from, slot_to, verdict FROM firing
WHERE NOT (coalesce(scheduled_for, 0) BETWEEN :first AND :last AND arrived_at BETWEEN :first AND :last
           AND coalesce(slot_from, 0) BETWEEN :first AND :last AND coalesce(slot_to, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || verdict || '|', '') <> :known) LIMIT :room;

-- name: strange_run
SELECT id, run_after, scheduled_for, queued_at, started_at, attempt_at, ended_at, cancel_at, dead_at, state FROM run
WHERE NOT (run_after BETWEEN :first AND :last AND coalesce(scheduled_for, 0) BETWEEN :first AND :last
           AND queued_at BETWEEN :first AND :last AND coalesce(started_at, 0) BETWEEN :first AND :last
           AND coalesce(attempt_at, 0) BETWEEN :first AND :last
           AND coalesce(ended_at, 0) BETWEEN :first AND :last
           AND coalesce(cancel_at, 0) BETWEEN :first AND :last AND coalesce(dead_at, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || state || '|', '') <> :known) LIMIT :room;

-- name: strange_transition
SELECT run_id, at, to_state FROM transition
WHERE NOT (at BETWEEN :first AND :last AND replace(:known, '|' || to_state || '|', '') <> :known) LIMIT :room;

-- name: strange_effect
SELECT run_id, intended_at, done_at, state FROM effect
WHERE NOT (intended_at BETWEEN :first AND :last AND coalesce(done_at, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || state || '|', '') <> :known) LIMIT :room;

-- name: strange_delivery
SELECT id, next_try_at, created_at, ended_at, state FROM delivery
WHERE NOT (coalesce(next_try_at, 0) BETWEEN :first AND :last AND created_at BETWEEN :first AND :last
           AND coalesce(ended_at, 0) BETWEEN :first AND :last
           AND replace(:known, '|' || state || '|', '') <> :known) LIMIT :room;

-- name: strange_delivery_try
SELECT delivery_id, at, result FROM delivery_try
WHERE NOT (at BETWEEN :first AND :last AND replace(:known, '|' || result || '|', '') <> :known) LIMIT :room;

-- name: strange_inbox
SELECT id, created_at, read_at FROM inbox
WHERE NOT (created_at BETWEEN :first AND :last AND coalesce(read_at, 0) BETWEEN :first AND :last) LIMIT :room;

-- name: strange_worker
SELECT id, started_at, ended_at FROM worker
WHERE NOT (coalesce(started_at, 0) BETWEEN :first AND :last AND coalesce(ended_at, 0) BETWEEN :first AND :last) LIMIT :room;

-- name: strange_definition_change
SELECT id, at FROM definition_change
WHERE NOT (at BETWEEN :first AND :last) LIMIT :room;

-- name: payloads_to_come
-- What unfinished runs will be handed.
SELECT r.id, p.payload FROM run r JOIN firing_payload p ON p.firing_id = r.firing_id
WHERE r.state IN ('queued', 'running', 'held', 'lost') AND r.has_payload <> 0 AND p.payload IS NOT NULL
ORDER BY r.id LIMIT :room;

-- name: triggers_in_the_loop
SELECT id, policy, schedule FROM trigger WHERE removed_at IS NULL AND error = '' ORDER BY id LIMIT :room;
