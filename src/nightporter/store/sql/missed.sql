-- Missed slots: cards that wait for a person, what is told of what was missed, and the gaps in which it was.

-- name: card_write
-- What a card is about is said by the line that it stands beside.
INSERT INTO missed_card (id, workspace, automation_id, trigger_id, firing_id, slot, state, created_at)
SELECT r.id, f.workspace, f.automation_id, f.trigger_id, f.id, f.slot_from, 'pending', :now
FROM @rows(id text, firing_id text) AS r JOIN firing f ON f.id = r.firing_id WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: card_trim
-- pending becomes dismissed: so many of a trigger wait at most, and newer ones take the place of older ones.
UPDATE missed_card SET state = 'dismissed', decided_at = :now, decided_by = 'desk', note = :note
WHERE state = 'pending' AND id IN (
    SELECT w.id FROM (SELECT c.id, row_number() OVER (PARTITION BY c.trigger_id ORDER BY c.slot DESC) AS n
                      FROM @rows(automation_id text, trigger_id text) AS r
                      JOIN missed_card c ON c.automation_id = r.automation_id AND c.trigger_id = r.trigger_id
                      WHERE c.state = 'pending') AS w WHERE w.n > :most);

-- part: card
SELECT c.id, c.workspace, c.automation_id, a.name, c.trigger_id, c.firing_id, c.slot, c.state, c.created_at,
       c.decided_at, c.decided_by, c.note, c.run_id
FROM missed_card c JOIN automation a ON a.id = c.automation_id

-- name: cards
-- Those that wait first, the newest slot first.
@part(card)
WHERE (:decided = 1 OR c.state = 'pending') AND (:automation_id = '' OR c.automation_id = :automation_id)
ORDER BY CASE WHEN c.state = 'pending' THEN 0 ELSE 1 END, c.slot DESC, c.id LIMIT :room;

-- name: card
@part(card)
WHERE c.id = :id;

-- name: cards_like
-- Of one that is named by the beginning of its id.
SELECT id FROM missed_card WHERE id >= :beginning AND id < :beyond ORDER BY id LIMIT 10;

-- name: card_execute
-- pending becomes executed, by compare-and-set: of two who decide at once, one does.
UPDATE missed_card SET state = 'executed', decided_at = :now, decided_by = :by
WHERE id = :id AND state = 'pending' RETURNING id;

-- name: card_became
UPDATE missed_card SET run_id = :run_id WHERE id = :id;

-- name: cards_dismiss
UPDATE missed_card SET state = 'dismissed', decided_at = :now, decided_by = :by, note = :note
FROM @rows(id text) AS r WHERE missed_card.id = r.id AND missed_card.state = 'pending' RETURNING missed_card.id;

-- name: cards_dismiss_of
UPDATE missed_card SET state = 'dismissed', decided_at = :now, decided_by = :by, note = :note
WHERE automation_id = :automation_id AND state = 'pending';

-- name: cards_prune
DELETE FROM missed_card WHERE id IN (
    SELECT c.id FROM missed_card c WHERE c.state <> 'pending' AND c.decided_at < :before LIMIT :room);

-- name: missed_lines
-- What was answered too late since a line of that id: it did not run, or it runs late; a sum for each trigger.
SELECT f.automation_id, a.name, a.workspace, a.owner, t.schedule, t.policy,
       sum(CASE WHEN f.verdict IN ('missed', 'collapsed') THEN coalesce(f.slots, 1) ELSE 0 END),
       min(coalesce(f.slots_exact, 1)),
       sum(CASE WHEN f.verdict = 'admitted' THEN 1 ELSE 0 END),
       sum(CASE WHEN f.verdict NOT IN ('missed', 'collapsed', 'admitted') THEN 1 ELSE 0 END),
       (SELECT count(*) FROM missed_card c WHERE c.automation_id = f.automation_id AND c.trigger_id = f.trigger_id
        AND c.state = 'pending')
FROM firing f JOIN automation a ON a.id = f.automation_id JOIN trigger t ON t.id = f.trigger_id
WHERE f.id >= :since AND f.source = 'clock'
  AND (f.reason = 'missed_policy' OR (f.scheduled_for < f.arrived_at - :late AND f.verdict <> 'repeated'))
GROUP BY f.automation_id, a.name, a.workspace, a.owner, f.trigger_id, t.schedule, t.policy
ORDER BY a.workspace, a.name, f.trigger_id;

-- name: automation_names
SELECT a.id, a.name FROM @rows(id text) AS r JOIN automation a ON a.id = r.id;

-- name: gap_write
INSERT INTO gap (kind, gap_from, gap_to, worker) VALUES (:kind, :gap_from, :gap_to, :worker)
ON CONFLICT (gap_to, gap_from, kind) DO NOTHING;

-- name: gap_moves_runs
-- The wall was set: what waits for a time waits as long as it was to. What was written since then waits rightly already,
-- and what somebody else holds is taken up just now.
UPDATE run SET run_after = run.run_after + :by, rank = run.rank + :by
WHERE id IN (SELECT waits.id FROM run AS waits WHERE waits.blocked = 'time' AND NOT EXISTS (
                 SELECT 1 FROM transition t WHERE t.run_id = waits.id AND t.seq = waits.seq AND t.at > :since
                 AND t.at <= :now)
             @lock_free(waits));

-- name: gap_moves_deliveries
-- As much for tries. A quiet hour is one of the wall, and is asked about when it is tried.
UPDATE delivery SET next_try_at = delivery.next_try_at + :by
WHERE id IN (SELECT waits.id FROM delivery AS waits WHERE waits.state = 'pending' AND waits.tries > 0
             AND coalesce(waits.reason, '') <> 'quiet_hours' AND NOT EXISTS (
                 SELECT 1 FROM delivery_try t WHERE t.delivery_id = waits.id AND t.at > :since AND t.at <= :now)
             @lock_free(waits));

-- name: gaps
-- The latest first.
SELECT kind, gap_from, gap_to, worker FROM gap WHERE gap_to > :since ORDER BY gap_to DESC, gap_from DESC LIMIT :room;

-- name: gap_around
-- The latest one in which an instant lies.
SELECT kind, gap_from, gap_to, worker FROM gap WHERE gap_from <= :at AND gap_to >= :at AND kind <> 'step_back'
ORDER BY gap_to DESC LIMIT 1;

-- name: gaps_prune
DELETE FROM gap WHERE gap_to < :before;
