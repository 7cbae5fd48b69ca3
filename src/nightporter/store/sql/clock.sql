-- The clock source: armed slots.

-- name: trigger_due
-- Stored instants are compared; no schedule is parsed to find out what is due.
SELECT t.id, t.automation_id, t.schedule, t.version, t.next_fire_at, t.policy, t.tzdata
FROM trigger t
WHERE t.next_fire_at <= :now AND t.error = ''
ORDER BY t.next_fire_at LIMIT :room;

-- name: trigger_due_next
-- What is due; where nothing is, all that comes at the next armed slot.
SELECT t.id, t.automation_id, t.schedule, t.version, t.next_fire_at, t.policy, t.tzdata
FROM trigger t
WHERE t.error = '' AND t.next_fire_at <= coalesce(
    (SELECT CASE WHEN n.next_fire_at > :now THEN n.next_fire_at ELSE :now END
     FROM (SELECT next_fire_at FROM trigger WHERE next_fire_at IS NOT NULL AND error = '' ORDER BY next_fire_at
           LIMIT 1) AS n), :now)
ORDER BY t.next_fire_at LIMIT :room;

-- name: trigger_armed_still
-- The triggers whose slot is still where it was read, under the same schedule; locked, so that whoever moves it on
-- answers it. An edit may leave the slot where it was and change all that come after it. SQLite would look for
-- them among all that have this slot, and at a busy instant that is everybody: the sign and the join keep it from that.
SELECT t.id FROM @rows(id text, version int, was int) AS r CROSS JOIN trigger t
WHERE t.id = r.id AND +t.next_fire_at = r.was AND t.version = r.version ORDER BY t.id @lock(t);

-- name: trigger_advance
-- Compare-and-set; the loser changes nothing and goes on.
UPDATE trigger SET next_fire_at = r.next_fire_at, tzdata = r.tzdata, wall = r.wall
FROM @rows(id text, version int, was int, next_fire_at int, tzdata text, wall int) AS r
WHERE trigger.id = r.id AND trigger.next_fire_at = r.was AND trigger.version = r.version;

-- name: trigger_arm
-- A slot is set without one being answered: a new trigger, an edit, an enabled automation.
UPDATE trigger SET next_fire_at = r.next_fire_at, tzdata = r.tzdata, wall = r.wall, version = r.version,
       schedule = r.schedule
FROM @rows(id text, next_fire_at int, tzdata text, wall int, version int, schedule text) AS r
WHERE trigger.id = r.id;

-- name: trigger_disarm
UPDATE trigger SET next_fire_at = NULL FROM @rows(id text) AS r WHERE trigger.id = r.id;

-- name: trigger_quarantine
UPDATE trigger SET next_fire_at = NULL, error = :error WHERE id = :id;

-- name: trigger_quarantined
SELECT key FROM quarantine WHERE subject = 'trigger' ORDER BY key;

-- name: trigger_release
UPDATE trigger SET error = '' WHERE id = :id;

-- name: trigger_stale_zones
-- Armed slots that were computed with another release of the time zone data; beside each what the zone's clock showed
-- then, and before what no slot is owed, or up to when each has its answer.
SELECT t.id, t.automation_id, t.schedule, t.version, t.next_fire_at, t.policy, t.tzdata, t.wall,
       (SELECT max(v.valid_from) FROM trigger_version v WHERE v.trigger_id = t.id AND v.valid_to IS NULL), t.last_fired_at
FROM trigger t WHERE t.id > :after AND t.next_fire_at IS NOT NULL AND t.tzdata <> :tzdata ORDER BY t.id LIMIT :room;

-- name: trigger_version_open
INSERT INTO trigger_version (trigger_id, version, schedule, timezone, tzdata, valid_from)
VALUES (:trigger_id, :version, :schedule, :timezone, :tzdata, :valid_from);

-- name: trigger_version_close
-- One that is yet to begin, see `operations.arm.edited_since`, never does.
UPDATE trigger_version SET valid_to = CASE WHEN valid_from > :valid_to THEN valid_from ELSE :valid_to END
WHERE trigger_id = :trigger_id AND valid_to IS NULL;

-- name: pause_open
INSERT INTO pause (automation_id, paused_from, reason) VALUES (:automation_id, :paused_from, :reason)
ON CONFLICT (automation_id, paused_from) DO UPDATE SET paused_to = NULL, reason = excluded.reason;

-- name: pause_close
UPDATE pause SET paused_to = :paused_to WHERE automation_id = :automation_id AND paused_to IS NULL
RETURNING paused_from, reason;
