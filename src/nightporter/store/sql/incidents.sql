-- Incidents: faults that recur, each once; alerts about them; and what a person decided about what failed.

-- name: incident_reopen
-- One that was over for less than its cooldown goes on as itself, unless another stands.
UPDATE incident SET state = 'open', count = incident.count + r.count, last_at = :now, subject = r.subject,
       automation_id = r.automation_id, error = r.error, resolved_at = NULL, decided_at = NULL, decided_by = '', note = '',
       notified_at = CASE WHEN incident.notified_at > :now THEN :now ELSE incident.notified_at END
FROM @rows(kind text, route text, signature text, automation_id text, subject text, error text, count int,
           over_since int) AS r
WHERE incident.state = 'resolved' AND incident.resolved_at >= r.over_since
  AND incident.id = (SELECT max(i.id) FROM incident i WHERE i.state = 'resolved' AND i.kind = r.kind
                     AND i.route = r.route AND i.signature = r.signature)
  AND NOT EXISTS (SELECT 1 FROM incident s WHERE s.state <> 'resolved' AND s.kind = r.kind
                  AND s.route = r.route AND s.signature = r.signature)
RETURNING incident.id, incident.kind, incident.route, incident.signature, incident.state, incident.count,
          incident.first_at, incident.notified_at;

-- name: incident_write
-- What was told at a time that is still to come, because the clock was set back, counts as told now.
INSERT INTO incident (id, workspace, automation_id, kind, route, signature, state, count, first_at, last_at, subject,
                      error)
SELECT r.id, r.workspace, r.automation_id, r.kind, r.route, r.signature, 'open', r.count, :now, :now, r.subject, r.error
FROM @rows(id text, workspace text, automation_id text, kind text, route text, signature text, count int, subject text,
           error text) AS r WHERE true
ON CONFLICT (route, signature, kind) WHERE state <> 'resolved' DO UPDATE SET
    count = incident.count + excluded.count, last_at = excluded.last_at, subject = excluded.subject,
    automation_id = excluded.automation_id, error = excluded.error,
    notified_at = CASE WHEN incident.notified_at > :now THEN :now ELSE incident.notified_at END
RETURNING incident.id, incident.kind, incident.route, incident.signature, incident.state, incident.count,
          incident.first_at, incident.notified_at;

-- name: incident_notified
UPDATE incident SET notified_at = :now, told_at = CASE WHEN incident.told_at >= :now THEN NULL ELSE incident.told_at END
FROM @rows(id text) AS r WHERE incident.id = r.id;

-- name: incident_over_of
-- What stands of an automation of one kind is over.
UPDATE incident SET state = 'resolved', resolved_at = :now, decided_by = r.by
FROM @rows(automation_id text, kind text, by text) AS r
WHERE incident.automation_id = r.automation_id AND incident.kind = r.kind AND incident.state <> 'resolved'
RETURNING incident.id, incident.workspace, incident.automation_id, incident.kind, incident.route, incident.signature,
          incident.count, incident.first_at, incident.last_at, incident.subject, incident.error, incident.notified_at,
          incident.told_at;

-- name: incident_over_at
-- What stands of a route is over.
UPDATE incident SET state = 'resolved', resolved_at = :now, decided_by = r.by
FROM @rows(kind text, route text, by text) AS r
WHERE incident.kind = r.kind AND incident.route = r.route AND incident.state <> 'resolved'
RETURNING incident.id, incident.workspace, incident.automation_id, incident.kind, incident.route, incident.signature,
          incident.count, incident.first_at, incident.last_at, incident.subject, incident.error, incident.notified_at,
          incident.told_at;

-- name: incident_last_at
-- When the latest fault of a route came, of what stands.
SELECT max(last_at) FROM incident WHERE route = :route AND kind = :kind AND state <> 'resolved';

-- name: incident_told_over
UPDATE incident SET told_at = :now FROM @rows(id text) AS r WHERE incident.id = r.id;

-- name: incident_any_lane
-- Whether the incident of any receiver stands.
SELECT 1 FROM incident WHERE state <> 'resolved' AND kind = 'delivery' LIMIT 1;

-- name: incident_lanes
-- The receivers that are at fault.
SELECT DISTINCT route FROM incident WHERE state <> 'resolved' AND kind = 'delivery';

-- name: incident_acknowledge
UPDATE incident SET state = 'acknowledged', decided_at = :now, decided_by = :by, note = :note
WHERE id = :id AND state = 'open';

-- name: incident_resolve
UPDATE incident SET state = 'resolved', resolved_at = :now, decided_at = :now, decided_by = :by, note = :note
WHERE id = :id AND state <> 'resolved';

-- name: alerts_lately
-- To a receiver, in the time before now: how many, and whether one of them said that others are kept back.
SELECT count(*), coalesce(max(CASE WHEN alert = 'folded' THEN 1 ELSE 0 END), 0)
FROM delivery WHERE alert IS NOT NULL AND lane = :lane AND created_at > :since AND created_at <= :now;

-- name: alert_deliver
INSERT INTO delivery (id, run_id, automation_id, workspace, destination, kind, lane, state, best_effort, event_id,
                      next_try_at, created_at, alert)
VALUES (:id, :incident_id, :automation_id, :workspace, :destination, :kind, :lane, 'pending', 0, :event_id,
        :now, :now, :alert);

-- name: alert_write
INSERT INTO alert (delivery_id, automation, timezone, config, body, cooldown, next_routes)
VALUES (:id, :automation, :timezone, :config, :body, :cooldown, :next_routes);

-- name: alerts_of
SELECT a.delivery_id, a.automation, a.timezone, a.config, a.body, a.cooldown, a.next_routes, d.alert, d.created_at,
       d.run_id, d.automation_id, d.workspace
FROM @rows(id text) AS r JOIN alert a ON a.delivery_id = r.id JOIN delivery d ON d.id = a.delivery_id;

-- name: automation_auto_pause  active -> auto_paused
UPDATE automation SET state = 'auto_paused', state_reason = :reason, state_by = 'desk', state_at = :now,
       state_until = NULL
WHERE id = :id AND state = 'active';

-- name: schedule_error
-- Of an automation that acts, one more in a row.
UPDATE automation SET schedule_errors = schedule_errors + 1 WHERE id = :id AND state = 'active'
RETURNING schedule_errors;

-- name: schedule_readable
-- Each of its schedules can be made sense of again.
UPDATE automation SET schedule_errors = 0 WHERE id = :id AND schedule_errors > 0
  AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.automation_id = :id AND t.error <> '' AND t.removed_at IS NULL);

-- name: automation_stopped_failing
UPDATE automation SET failing = 0 FROM @rows(id text) AS r WHERE automation.id = r.id;

-- name: dead_undecided
SELECT run.id FROM @rows(run_id text) AS r JOIN run ON run.id = r.run_id
WHERE run.dead_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dead_letter l WHERE l.run_id = run.id);

-- name: dead_decide
INSERT INTO dead_letter (run_id, decision, replayed_by, by, at)
SELECT r.run_id, r.decision, r.replayed_by, :by, :now
FROM @rows(run_id text, decision text, replayed_by text) AS r
JOIN run ON run.id = r.run_id AND run.dead_at IS NOT NULL WHERE true
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id;

-- name: inbox_read_of_runs
-- Who decides about a run has seen what was said of it.
UPDATE inbox SET read_at = :now FROM @rows(run_id text) AS r WHERE inbox.run_id = r.run_id AND inbox.read_at IS NULL;

-- name: run_delay
-- A run that waits begins no sooner; those that are begun already are left alone.
UPDATE run SET blocked = 'time', run_after = r.run_after, rank = r.run_after + run.priority * 10000000
FROM @rows(id text, run_after int) AS r
WHERE run.id = r.id AND run.state = 'queued' AND run.blocked IS NULL;

-- name: delivery_close
-- A person decided not to send it again.
UPDATE delivery SET closed_at = :now, closed_by = :by
FROM @rows(id text) AS r
WHERE delivery.id = r.id AND delivery.state IN ('given_up', 'unknown', 'unverified') AND delivery.closed_at IS NULL
RETURNING delivery.id, delivery.run_id;

-- name: read_incidents
SELECT i.id, i.workspace, i.automation_id, coalesce(a.name, ''), i.kind, i.route, i.signature, i.state, i.count,
       i.first_at, i.last_at, i.subject, i.error, i.notified_at, i.decided_at, i.decided_by, i.note, i.resolved_at
FROM incident i LEFT JOIN automation a ON a.id = i.automation_id
WHERE i.id < :before AND (:automation_id = '' OR i.automation_id = :automation_id)
  AND (:state = '' OR i.state = :state) AND (:all = 1 OR i.state <> 'resolved')
ORDER BY i.id DESC LIMIT :room;

-- name: read_incident
SELECT i.id, i.workspace, i.automation_id, coalesce(a.name, ''), i.kind, i.route, i.signature, i.state, i.count,
       i.first_at, i.last_at, i.subject, i.error, i.notified_at, i.decided_at, i.decided_by, i.note, i.resolved_at
FROM incident i LEFT JOIN automation a ON a.id = i.automation_id WHERE i.id = :id;

-- name: read_incident_ids
SELECT id FROM incident WHERE id LIKE :prefix ORDER BY id DESC LIMIT 20;

-- name: prune_alerts
-- Alerts that have ended and whose time has passed.
DELETE FROM delivery WHERE id IN (
    SELECT d.id FROM delivery d WHERE d.alert IS NOT NULL AND d.ended_at < :before LIMIT :room)
RETURNING id;

-- name: prune_alert_bodies
DELETE FROM alert WHERE delivery_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_alert_tries
DELETE FROM delivery_try WHERE delivery_id IN (SELECT r.id FROM @rows(id text) AS r);

-- name: prune_incidents
-- Those that are over, with no alert left of them.
DELETE FROM incident WHERE id IN (
    SELECT i.id FROM incident i WHERE i.state = 'resolved' AND i.resolved_at < :before
    AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.run_id = i.id) LIMIT :room);

-- name: prune_dead_letters
DELETE FROM dead_letter WHERE run_id IN (SELECT r.id FROM @rows(id text) AS r);
