-- Admission: a firing becomes a queued run, or a verdict with its reason.

-- name: trigger_facts
-- What the gates need of the triggers of a batch; on PostgreSQL it locks them behind their automations, in the order
-- of ids: what is not locked would be told as it was before an edit that we waited for.
SELECT t.id, t.automation_id, t.kind, t.enabled, t.removed_at, t.policy, t.version,
       a.workspace, a.owner, a.state, a.state_reason, a.version, a.last_started_at, t.firings,
       a.concurrent, t.counted, t.counted_at, a.counted_runs
FROM @rows(id text) AS r
JOIN trigger t ON t.id = r.id
JOIN automation a ON a.id = t.automation_id
ORDER BY a.id, t.id @lock(a, t);

-- name: firing_recall
-- The first telling of each (trigger, external id), where there was one.
SELECT f.trigger_id, f.dedupe_key, f.run_id
FROM @rows(trigger_id text, external_id text) AS r
JOIN firing f ON f.trigger_id = r.trigger_id AND f.dedupe_key = r.external_id;

-- name: automation_load
-- How much of each automation is waiting, going and begun within the hour; each count stops at the batch's
-- highest cap, because no gate asks for more. Runs that a person made by hand use neither the line nor the hour.
SELECT r.automation_id,
       (SELECT count(*) FROM (SELECT 1 FROM run WHERE run.automation_id = r.automation_id AND run.state = 'queued'
                              AND run.state IN ('queued', 'running', 'held', 'lost')
                              AND run.source <> 'manual' LIMIT :queued_cap) AS q),
       (SELECT count(*) FROM (SELECT 1 FROM run WHERE run.automation_id = r.automation_id
                              AND run.state IN ('queued', 'running', 'held', 'lost') LIMIT :going_cap) AS g),
       (SELECT count(*) FROM (SELECT 1 FROM run WHERE run.automation_id = r.automation_id
                              AND run.queued_at > :hour_from AND run.source <> 'manual' LIMIT :hour_cap) AS h),
       (SELECT run.id FROM run WHERE 1 <= :going_cap AND run.automation_id = r.automation_id
        AND run.state IN ('queued', 'running', 'held', 'lost') ORDER BY run.state DESC LIMIT 1),
       (SELECT min(o.queued_at) FROM (SELECT run.queued_at FROM run WHERE run.automation_id = r.automation_id
                                      AND run.queued_at > :hour_from AND run.source <> 'manual'
                                      ORDER BY run.queued_at DESC LIMIT :hour_cap) AS o)
FROM @rows(automation_id text) AS r;

-- name: run_going
-- The unfinished runs of an automation, for the overlap policy `replace`.
SELECT id, state, token, seq, attempt FROM run
WHERE automation_id = :automation_id AND state IN ('queued', 'running', 'held', 'lost')
ORDER BY id @lock(run);

-- name: incident_open
-- One of the open incidents of each automation, where it has any; trouble of a receiver is not its own.
SELECT r.automation_id, min(i.id) FROM @rows(automation_id text) AS r
JOIN incident i ON i.automation_id = r.automation_id
WHERE i.state <> 'resolved' AND i.state = 'open' AND i.kind <> 'delivery'
GROUP BY r.automation_id;

-- name: run_gathering
-- The runs that wait for others like them: locked, because what was claimed meanwhile takes nothing more.
SELECT id, queued_at, run_after, merged FROM run
WHERE state IN ('queued', 'running', 'held', 'lost') AND state = 'queued' AND automation_id = :automation_id
  AND trigger_id = :trigger_id AND merge_key = :merge_key AND token = 0
ORDER BY id @lock(run);

-- name: run_gather
-- It waits for others like it: behind the run before it, or for its time. What was folded into it is counted, and it
-- carries what came last.
UPDATE run SET run_after = r.run_after, rank = r.run_after + run.priority * 10000000, merge_key = r.merge_key,
       merged = r.merged, carries = coalesce(r.carries, run.carries),
       has_payload = coalesce(r.has_payload, run.has_payload), blocked = coalesce(run.blocked, 'time')
FROM @rows(id text, run_after int, merge_key text, merged int, carries text, has_payload int) AS r
WHERE run.id = r.id AND run.state = 'queued' AND run.token = 0;

-- name: run_queue
-- A run begins: its first transition is written beside it, by `transition_queue`.
INSERT INTO run (id, workspace, automation_id, trigger_id, firing_id, source, version, runner, state, blocked,
                 rank, run_after, priority, attempts, scheduled_for, queued_at, root, depth, replay_of, has_payload,
                 catchup, stale_at)
SELECT r.id, r.workspace, r.automation_id, r.trigger_id, r.firing_id, r.source, r.version, r.runner, 'queued',
       r.blocked, r.rank, r.run_after, r.priority, r.attempts, r.scheduled_for, :now, r.root, r.depth, r.replay_of,
       r.has_payload, r.catchup, r.stale_at
FROM @rows(id text, workspace text, automation_id text, trigger_id text, firing_id text, source text, version int,
           runner text, blocked text, rank int, priority int, attempts int, scheduled_for int, root text, depth int,
           replay_of text, has_payload int, run_after int, catchup int, stale_at int) AS r;

-- name: transition_queue
INSERT INTO transition (run_id, seq, to_state, at, attempt) SELECT r.run_id, 1, 'queued', :now, 0
FROM @rows(run_id text) AS r;

-- name: transition_write
INSERT INTO transition (run_id, seq, from_state, to_state, reason, at, worker, token, attempt, error_class)
SELECT r.run_id, r.seq, r.from_state, r.to_state, r.reason, :now, r.worker, r.token, r.attempt, r.error_class
FROM @rows(run_id text, seq int, from_state text, to_state text, reason text, worker text, token int, attempt int,
           error_class text) AS r;

-- name: firing_write
INSERT INTO firing (id, workspace, automation_id, trigger_id, source, external_id, dedupe_key, scheduled_for,
                    arrived_at, verdict, reason, detail, run_id, version, slot_from, slot_to, slots, slots_exact,
                    sender, owner, root, depth)
SELECT r.id, r.workspace, r.automation_id, r.trigger_id, r.source, r.external_id, r.dedupe_key, r.scheduled_for,
       :now, r.verdict, r.reason, r.detail, r.run_id, r.version, r.slot_from, r.slot_to, r.slots, r.slots_exact,
       r.sender, r.owner, r.root, r.depth
FROM @rows(id text, workspace text, automation_id text, trigger_id text, source text, external_id text,
           dedupe_key text, scheduled_for int, verdict text, reason text, detail text, run_id text, version int,
           slot_from int, slot_to int, slots int, slots_exact int, sender text, owner text, root text, depth int)
           AS r;

-- name: firing_payload_write
INSERT INTO firing_payload (firing_id, text, payload, metadata)
SELECT r.firing_id, r.text, r.payload, r.metadata
FROM @rows(firing_id text, text text, payload text, metadata text) AS r;

-- name: trigger_counted
-- Arrivals since the threshold last let one through.
UPDATE trigger SET counted = r.counted, counted_at = r.counted_at
FROM @rows(id text, counted int, counted_at int) AS r WHERE trigger.id = r.id;

-- name: automation_counted
-- Runs of its schedules, where their number is limited.
UPDATE automation SET counted_runs = automation.counted_runs + r.runs,
       counted_from = coalesce(automation.counted_from, :now)
FROM @rows(id text, runs int) AS r WHERE automation.id = r.id;

-- name: automation_counted_runs
SELECT counted_runs FROM automation WHERE id = :id;

-- name: automation_count_anew
UPDATE automation SET counted_runs = 0, counted_from = NULL WHERE id = :id AND counted_from IS NOT NULL;

-- name: automation_has_due
-- Whether one of its slots has come and is not answered.
SELECT EXISTS (SELECT 1 FROM trigger WHERE automation_id = :id AND next_fire_at <= :now);

-- name: trigger_disarm_all
UPDATE trigger SET next_fire_at = NULL WHERE automation_id = :automation_id AND next_fire_at IS NOT NULL;

-- name: trigger_count
UPDATE trigger SET firings = trigger.firings + r.firings, runs = trigger.runs + r.runs, last_fired_at = :now,
       last_verdict = r.verdict, last_reason = r.reason
FROM @rows(id text, firings int, runs int, verdict text, reason text) AS r
WHERE trigger.id = r.id;
