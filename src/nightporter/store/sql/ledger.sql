-- The record read back. Nothing here locks or changes a row; every list walks an index from a cursor on.

-- name: read_automation
SELECT a.id, a.workspace, a.owner, a.name, a.state, a.state_reason, a.state_by, a.state_at, a.state_until, a.truth,
       a.path, a.error, a.version, a.concurrent, a.expires, a.created_at, a.updated_at, a.last_run_id, a.last_outcome,
       a.last_success_at, a.last_failure_at, a.errors_in_a_row
FROM automation a WHERE a.id = :id;

-- name: read_automations
SELECT a.id, a.workspace, a.owner, a.name, a.state, a.state_reason, a.state_by, a.state_at, a.state_until, a.truth,
       a.path, a.error, a.version, a.concurrent, a.expires, a.created_at, a.updated_at, a.last_run_id, a.last_outcome,
       a.last_success_at, a.last_failure_at, a.errors_in_a_row
FROM automation a
WHERE a.state <> 'removed' AND (a.workspace, a.name) > (:workspace, :name)
ORDER BY a.workspace, a.name LIMIT :room;

-- name: read_automation_names
SELECT name FROM automation WHERE state <> 'removed' ORDER BY workspace, name LIMIT :room;

-- name: read_triggers
SELECT t.automation_id, t.id, t.name, t.kind, t.enabled, t.policy, t.schedule, t.next_fire_at, t.error, t.firings,
       t.runs, t.last_fired_at, t.last_verdict, t.last_reason
FROM @rows(automation_id text) AS r JOIN trigger t ON t.automation_id = r.automation_id
WHERE t.removed_at IS NULL ORDER BY t.automation_id, t.id;

-- name: read_trigger
-- One trigger, removed or not.
SELECT t.automation_id, t.id, t.name, t.kind, t.enabled, t.policy, t.schedule, t.next_fire_at, t.error, t.firings,
       t.runs, t.last_fired_at, t.last_verdict, t.last_reason
FROM trigger t WHERE t.id = :id;

-- name: read_load
-- Unfinished runs of each automation. The list of states is the index's own condition, which SQLite wants repeated.
SELECT r.id,
       (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state IN ('queued', 'running', 'held', 'lost')
        AND run.state = 'queued'),
       (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state IN ('queued', 'running', 'held', 'lost')
        AND run.state = 'running'),
       (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state IN ('queued', 'running', 'held', 'lost')
        AND run.state = 'held'),
       (SELECT count(*) FROM run WHERE run.state IN ('lost', 'review', 'held') AND run.state = 'review'
        AND run.automation_id = r.id)
FROM @rows(id text) AS r;

-- name: read_definition
SELECT definition FROM automation_version WHERE automation_id = :automation_id AND version = :version;

-- name: read_definitions
-- The definitions in force, for looking at what they need.
SELECT a.name, v.definition FROM automation a JOIN automation_version v
ON v.automation_id = a.id AND v.version = a.version
WHERE a.state <> 'removed' AND a.state NOT IN ('completed', 'expired') ORDER BY a.workspace, a.name LIMIT :room;

-- name: read_month
SELECT month, runs, succeeded, quiet, failed, cancelled FROM rollup_month WHERE automation_id = :automation_id
ORDER BY month DESC LIMIT :room;

-- name: read_run
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM run LEFT JOIN automation a ON a.id = run.automation_id WHERE run.id = :id;

-- name: read_runs
-- By id, which begins with when a run was due or asked for.
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM run LEFT JOIN automation a ON a.id = run.automation_id
WHERE run.id < :before AND run.id >= :since AND (:state = '' OR run.state = :state)
ORDER BY run.id DESC LIMIT :room;

-- name: read_runs_active
-- Few among many: found in the index of unfinished runs. `|| ''` keeps the planner from walking all runs by id.
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM (SELECT o.id FROM run o WHERE o.state IN ('queued', 'running', 'held', 'lost') AND o.state = :state
      AND o.id || '' < :before AND o.id || '' >= :since ORDER BY o.id || '' DESC LIMIT :room) AS open
JOIN run ON run.id = open.id LEFT JOIN automation a ON a.id = run.automation_id
ORDER BY run.id DESC;

-- name: read_runs_open
-- The same for those that are set aside.
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM (SELECT o.id FROM run o WHERE o.state IN ('lost', 'review', 'held') AND o.state = :state
      AND o.id || '' < :before AND o.id || '' >= :since ORDER BY o.id || '' DESC LIMIT :room) AS open
JOIN run ON run.id = open.id LEFT JOIN automation a ON a.id = run.automation_id
ORDER BY run.id DESC;

-- name: read_runs_of
-- Of one automation, by when they were admitted.
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM run LEFT JOIN automation a ON a.id = run.automation_id
WHERE run.automation_id = :automation_id AND (run.queued_at, run.id) < (:before_at, :before) AND run.queued_at >= :since
  AND (:state = '' OR run.state = :state)
ORDER BY run.queued_at DESC, run.id DESC LIMIT :room;

-- name: read_runs_dead
-- Until somebody decided about it, or a replay of it became a run: its external id begins with that of the run, and hexadecimal digits follow.
SELECT run.id, run.automation_id, a.name, run.workspace, run.trigger_id, run.firing_id, run.source, run.version,
       run.runner, run.state, run.reason, run.blocked, run.run_after, run.attempt, run.attempts, run.worker,
       run.scheduled_for, run.queued_at, run.started_at, run.attempt_at, run.ended_at, run.ran_late, run.outcome,
       run.error_class, run.error, run.exit_code, run.cancel_at, run.cancel_by, run.dead_at, run.root, run.depth,
       run.replay_of, run.merged, run.carries, run.catchup,
       (SELECT l.answer FROM run_look l WHERE l.run_id = run.id)
FROM run LEFT JOIN automation a ON a.id = run.automation_id
WHERE run.dead_at IS NOT NULL AND (run.dead_at, run.id) < (:before_at, :before)
  AND (:automation_id = '' OR run.automation_id = :automation_id) AND run.dead_at >= :since
  AND (:reason = '' OR run.reason = :reason)
  AND NOT EXISTS (SELECT 1 FROM firing f WHERE f.trigger_id = run.automation_id || '/manual'
                  AND f.dedupe_key > run.id AND f.dedupe_key < run.id || 'g' AND f.run_id IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM dead_letter l WHERE l.run_id = run.id)
ORDER BY run.dead_at DESC, run.id DESC LIMIT :room;

-- name: read_run_ids
-- That begin so; the second bound is the first text after all of them.
SELECT id FROM run WHERE id >= :low AND id < :high ORDER BY id DESC LIMIT :room;

-- name: read_firing_ids
SELECT id FROM firing WHERE id >= :low AND id < :high ORDER BY id DESC LIMIT :room;

-- name: read_latest_run
SELECT id FROM run WHERE automation_id = :automation_id ORDER BY queued_at DESC, id DESC LIMIT 1;

-- name: read_transitions
SELECT seq, from_state, to_state, reason, at, worker, token, attempt, error_class FROM transition
WHERE run_id = :run_id ORDER BY seq;

-- name: read_output
SELECT text, data, log FROM run_output WHERE run_id = :run_id;

-- name: read_effects
SELECT key, name, state, attempt, token, intended_at, done_at, permalink FROM effect
WHERE run_id = :run_id ORDER BY intended_at, key;

-- name: read_firing
SELECT f.id, f.automation_id, a.name, f.workspace, f.trigger_id, f.source, f.external_id, f.scheduled_for,
       f.arrived_at, f.verdict, f.reason, f.detail, f.run_id, f.slot_from, f.slot_to, f.slots, f.slots_exact, f.sender,
       f.owner, f.root, f.depth
FROM firing f LEFT JOIN automation a ON a.id = f.automation_id WHERE f.id = :id;

-- name: read_firings
SELECT f.id, f.automation_id, a.name, f.workspace, f.trigger_id, f.source, f.external_id, f.scheduled_for,
       f.arrived_at, f.verdict, f.reason, f.detail, f.run_id, f.slot_from, f.slot_to, f.slots, f.slots_exact, f.sender,
       f.owner, f.root, f.depth
FROM firing f LEFT JOIN automation a ON a.id = f.automation_id
WHERE f.id < :before AND f.id >= :since AND (:verdict = '' OR f.verdict = :verdict)
  AND (:all_of_them = 1 OR f.verdict <> 'admitted')
ORDER BY f.id DESC LIMIT :room;

-- name: read_firings_of
SELECT f.id, f.automation_id, a.name, f.workspace, f.trigger_id, f.source, f.external_id, f.scheduled_for,
       f.arrived_at, f.verdict, f.reason, f.detail, f.run_id, f.slot_from, f.slot_to, f.slots, f.slots_exact, f.sender,
       f.owner, f.root, f.depth
FROM firing f LEFT JOIN automation a ON a.id = f.automation_id
WHERE f.automation_id = :automation_id AND (f.arrived_at, f.id) < (:before_at, :before) AND f.arrived_at >= :since
  AND (:verdict = '' OR f.verdict = :verdict) AND (:all_of_them = 1 OR f.verdict <> 'admitted')
ORDER BY f.arrived_at DESC, f.id DESC LIMIT :room;

-- name: read_slot_line
-- The line that answers a slot within `low` and `high`, alone or as one of several; no line is older than its slot.
SELECT f.id FROM firing f
WHERE f.automation_id = :automation_id AND f.arrived_at >= :low
  AND ((f.scheduled_for >= :low AND f.scheduled_for < :high) OR (f.slot_from < :high AND f.slot_to >= :low))
ORDER BY f.arrived_at, f.id LIMIT 1;

-- name: read_arrival
-- The line of what arrived without a slot within `low` and `high`.
SELECT f.id FROM firing f
WHERE f.automation_id = :automation_id AND f.arrived_at >= :low AND f.arrived_at < :high AND f.scheduled_for IS NULL
  AND f.slot_from IS NULL
ORDER BY f.arrived_at, f.id LIMIT 1;

-- name: read_payload
SELECT text, payload, metadata FROM firing_payload WHERE firing_id = :firing_id;

-- name: read_deliveries
SELECT d.id, d.run_id, d.automation_id, a.name, d.workspace, d.destination, d.kind, d.lane, d.state, d.reason,
       d.best_effort, d.event_id, d.tries, d.next_try_at, d.created_at, d.ended_at, d.evidence, d.error
FROM delivery d LEFT JOIN automation a ON a.id = d.automation_id
WHERE d.id < :before AND (:automation_id = '' OR d.automation_id = :automation_id)
  AND (:state = '' OR d.state = :state)
ORDER BY d.id DESC LIMIT :room;

-- name: read_deliveries_open
-- Waiting, on their way, or failed, of one automation: each from the index of its kind.
SELECT d.id, d.run_id, d.automation_id, a.name, d.workspace, d.destination, d.kind, d.lane, d.state, d.reason,
       d.best_effort, d.event_id, d.tries, d.next_try_at, d.created_at, d.ended_at, d.evidence, d.error
FROM (SELECT p.id FROM delivery p WHERE p.state = 'pending' AND p.automation_id = :automation_id
      UNION ALL
      SELECT s.id FROM delivery s WHERE s.state = 'sending' AND s.automation_id = :automation_id
      UNION ALL
      SELECT f.id FROM delivery f WHERE f.state IN ('given_up', 'unknown') AND f.automation_id = :automation_id
     ) AS open
JOIN delivery d ON d.id = open.id LEFT JOIN automation a ON a.id = d.automation_id
ORDER BY d.id DESC LIMIT :room;

-- name: read_deliveries_of_run
SELECT d.id, d.run_id, d.automation_id, a.name, d.workspace, d.destination, d.kind, d.lane, d.state, d.reason,
       d.best_effort, d.event_id, d.tries, d.next_try_at, d.created_at, d.ended_at, d.evidence, d.error
FROM delivery d LEFT JOIN automation a ON a.id = d.automation_id
WHERE d.run_id = :run_id ORDER BY d.id;

-- name: read_tries
SELECT t.delivery_id, t.n, t.at, t.result, t.status, t.error
FROM @rows(delivery_id text) AS r JOIN delivery_try t ON t.delivery_id = r.delivery_id
ORDER BY t.delivery_id, t.n;

-- name: read_inbox
SELECT i.id, i.workspace, i.owner, i.automation_id, a.name, i.run_id, i.kind, i.title, i.text, i.created_at, i.read_at
FROM inbox i LEFT JOIN automation a ON a.id = i.automation_id
WHERE i.id < :before AND (:kind = '' OR i.kind = :kind)
ORDER BY i.id DESC LIMIT :room;

-- name: read_inbox_unread
SELECT i.id, i.workspace, i.owner, i.automation_id, a.name, i.run_id, i.kind, i.title, i.text, i.created_at, i.read_at
FROM inbox i LEFT JOIN automation a ON a.id = i.automation_id
WHERE i.read_at IS NULL AND (i.created_at, i.id) < (:before_at, :before) AND (:kind = '' OR i.kind = :kind)
ORDER BY i.created_at DESC, i.id DESC LIMIT :room;

-- name: read_worker
SELECT id, role, host, pid, started_at, ended_at, ended_how FROM worker WHERE id = :id;

-- name: read_desk_at
-- Desks that were there at an instant, as far as is known: a dead one is there until it was found dead.
SELECT count(*) FROM worker WHERE role <> 'command' AND started_at <= :at AND (ended_at IS NULL OR ended_at > :at);

-- name: read_desk_after
-- The first desk that started after an instant.
SELECT min(started_at) FROM worker WHERE role <> 'command' AND started_at > :at AND started_at <= :until;

-- name: read_run_in_front
-- The run of the same automation whose end let this one start; a day back at most.
SELECT run.id, run.ended_at FROM run
WHERE run.automation_id = :automation_id AND run.queued_at >= :horizon AND run.queued_at <= :started_at
  AND run.id <> :id AND run.ended_at > :queued_at AND run.ended_at <= :started_at
ORDER BY run.ended_at DESC LIMIT 1;

-- name: read_running_just_before
-- How many runs of an automation were running just before one of them ended.
SELECT count(*) FROM run
WHERE run.automation_id = :automation_id AND run.queued_at >= :horizon AND run.queued_at <= :at
  AND run.started_at < :at AND (run.ended_at IS NULL OR run.ended_at >= :at);

-- name: read_pause
-- The newest pause that touches a span.
SELECT paused_from, paused_to, reason FROM pause
WHERE automation_id = :automation_id AND paused_from <= :until AND (paused_to IS NULL OR paused_to >= :since)
ORDER BY paused_from DESC LIMIT 1;

-- name: read_automation_states
SELECT state, count(*) FROM automation WHERE state <> 'removed' GROUP BY state ORDER BY state;

-- name: read_queue
-- Waiting runs by what they wait for, with the oldest of each.
SELECT coalesce(run.blocked, ''), count(*), min(run.queued_at) FROM run
WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'queued'
GROUP BY coalesce(run.blocked, '') ORDER BY 1;

-- name: read_running
SELECT count(*), min(run.attempt_at) FROM run
WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'running';

-- name: read_set_aside
SELECT run.state, count(*) FROM run WHERE run.state IN ('lost', 'review', 'held') GROUP BY run.state ORDER BY run.state;

-- name: read_dead_count
SELECT count(*) FROM run WHERE dead_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM firing f WHERE f.trigger_id = run.automation_id || '/manual'
                  AND f.dedupe_key > run.id AND f.dedupe_key < run.id || 'g' AND f.run_id IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM dead_letter l WHERE l.run_id = run.id);

-- name: read_delivery_counts
-- `(pending, the earliest next try, sending, given up or unknown)`.
SELECT (SELECT count(*) FROM delivery WHERE state = 'pending'),
       (SELECT min(next_try_at) FROM delivery WHERE state = 'pending'),
       (SELECT count(*) FROM delivery WHERE state = 'sending'),
       (SELECT count(*) FROM delivery WHERE state IN ('given_up', 'unknown') AND closed_at IS NULL);

-- name: read_unread_count
SELECT count(*) FROM inbox WHERE read_at IS NULL;

-- name: read_unread_dead
SELECT count(*), min(created_at) FROM inbox WHERE read_at IS NULL AND kind = 'dead_letter';

-- name: read_armed
-- `(armed triggers, the earliest slot)`.
SELECT count(*), min(next_fire_at) FROM trigger WHERE next_fire_at IS NOT NULL;

-- name: read_overdue
SELECT count(*), min(next_fire_at) FROM trigger WHERE next_fire_at IS NOT NULL AND next_fire_at < :before;

-- name: read_quarantine
SELECT subject, key, error, at FROM quarantine WHERE subject <> 'file' ORDER BY at, subject, key LIMIT :room;

-- name: read_broken
-- Automations whose definition cannot be read.
SELECT id, name, path, error, state_at FROM automation WHERE state <> 'removed' AND error <> ''
ORDER BY workspace, name LIMIT :room;

-- name: read_queued_long
-- Runs that wait for no time and no person, and have done so for long.
SELECT run.id, a.name, coalesce(run.blocked, ''), run.queued_at FROM run LEFT JOIN automation a ON a.id = run.automation_id
WHERE run.state IN ('queued', 'running', 'held', 'lost') AND run.state = 'queued' AND run.queued_at < :before
  AND run.run_after < :before AND (run.blocked IS NULL OR run.blocked IN ('overlap', 'concurrency'))
ORDER BY run.queued_at LIMIT :room;

-- name: read_reviews
SELECT run.id, a.name, run.attempt_at FROM run LEFT JOIN automation a ON a.id = run.automation_id
WHERE run.state IN ('lost', 'review', 'held') AND run.state = 'review' ORDER BY run.id LIMIT :room;

-- name: read_failed_deliveries
SELECT d.id, d.run_id, a.name, d.destination, d.state, d.error, d.ended_at, coalesce(d.alert, '')
FROM delivery d LEFT JOIN automation a ON a.id = d.automation_id
WHERE d.state IN ('given_up', 'unknown') AND d.closed_at IS NULL ORDER BY d.ended_at DESC LIMIT :room;

-- name: store_check
-- A quick look at whether the database holds together: one line `ok`, or what is wrong. SQLite has its own.
SELECT CASE WHEN count(*) = 1 THEN 'ok' ELSE 'the schema version is not recorded' END FROM setting
WHERE key = 'schema_version';
