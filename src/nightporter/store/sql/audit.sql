-- The audit: each query finds what must not be. A clean ledger gives no row.
--
-- Most give at most ten rows, the examples, and in the last column of each how many there are in all. Those that say
-- "groups" give a small number of sums over a whole table, which the audit judges; those of a page take its rows.
-- `:skew` is how far apart two machines' clocks may be, `:lag` how long two actors may pass one another.

-- A. Slots ---------------------------------------------------------------------------------------------------------

-- name: audit_slot_twice
SELECT q.*, count(*) OVER () FROM (
    SELECT trigger_id, coalesce(scheduled_for, slot_from) AS slot, count(*) AS n FROM firing
    WHERE source = 'clock' AND verdict NOT IN ('repeated', 'collapsed') AND coalesce(scheduled_for, slot_from) IS NOT NULL
    GROUP BY trigger_id, coalesce(scheduled_for, slot_from) HAVING count(*) > 1
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_slot_run_twice
SELECT q.*, count(*) OVER () FROM (
    SELECT trigger_id, scheduled_for, count(*) AS n FROM run
    WHERE source = 'clock' AND scheduled_for IS NOT NULL AND replay_of IS NULL
    GROUP BY trigger_id, scheduled_for HAVING count(*) > 1
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_slot_version
-- Slots are owed strictly after valid_from, up to and including valid_to.
SELECT q.*, count(*) OVER () FROM (
    SELECT f.id, f.trigger_id, f.version, coalesce(f.scheduled_for, f.slot_from) AS first, v.valid_from, v.valid_to
    FROM firing f LEFT JOIN trigger_version v ON v.trigger_id = f.trigger_id AND v.version = f.version
    WHERE f.source = 'clock' AND f.verdict <> 'repeated' AND coalesce(f.scheduled_for, f.slot_from) IS NOT NULL
      AND (v.version IS NULL OR coalesce(f.scheduled_for, f.slot_from) <= v.valid_from
           OR coalesce(f.scheduled_for, f.slot_to) > v.valid_to)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_verdict_groups
-- Groups: how often each verdict was reached for each reason, and one line of each.
SELECT verdict, reason, count(*), min(id) FROM firing GROUP BY verdict, reason;

-- name: audit_line_and_run
-- A run may be gone that had ended and is past its retention; without a mark of what was pruned, its transitions say so.
SELECT q.*, count(*) OVER () FROM (
    SELECT f.id, f.verdict, f.run_id,
           CASE WHEN f.verdict <> 'admitted' THEN 'stray' WHEN f.run_id IS NULL THEN 'none'
                WHEN r.id IS NULL THEN 'gone' ELSE 'other' END AS what
    FROM firing f LEFT JOIN run r ON r.id = f.run_id
    WHERE (f.verdict NOT IN ('admitted', 'repeated', 'merged') AND f.run_id IS NOT NULL)
       OR (f.verdict = 'admitted' AND f.run_id IS NULL)
       OR (f.verdict = 'admitted' AND r.id IS NOT NULL
           AND (r.trigger_id <> f.trigger_id OR r.firing_id <> f.id
                OR r.scheduled_for IS DISTINCT FROM f.scheduled_for))
       OR (f.verdict = 'admitted' AND f.run_id IS NOT NULL AND r.id IS NULL
           AND ((:pruned_before > 0 AND f.arrived_at >= :pruned_before)
                OR (:pruned_before = 0 AND NOT EXISTS (
                    SELECT 1 FROM transition t WHERE t.run_id = f.run_id
                    AND t.to_state IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped')))))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_run_without_line
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.firing_id, f.run_id FROM run r LEFT JOIN firing f ON f.id = r.firing_id
    WHERE f.id IS NULL OR f.run_id <> r.id
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_ranges_meet
-- In the order of their beginnings, no line begins where a range before it has not ended.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.trigger_id, w.low, w.reached FROM (
        SELECT s.id, s.trigger_id, s.low,
               max(CASE WHEN s.wide = 1 THEN s.high END) OVER (
                   PARTITION BY s.trigger_id ORDER BY s.low, s.wide DESC, s.id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
        FROM (SELECT f.id, f.trigger_id, coalesce(f.scheduled_for, f.slot_from) AS low,
                     coalesce(f.scheduled_for, f.slot_to) AS high,
                     CASE WHEN f.verdict = 'collapsed' THEN 1 ELSE 0 END AS wide
              FROM firing f
              WHERE f.source = 'clock' AND f.verdict <> 'repeated' AND coalesce(f.scheduled_for, f.slot_from) IS NOT NULL
                AND f.trigger_id IN (SELECT c.trigger_id FROM firing c WHERE c.verdict = 'collapsed')) AS s
    ) AS w WHERE w.low <= w.reached
) AS q ORDER BY 2, 3 LIMIT 10;

-- name: audit_range_shape
SELECT q.*, count(*) OVER () FROM (
    SELECT id, verdict, slot_from, slot_to, slots FROM firing
    WHERE (verdict IN ('collapsed', 'missed')
           AND (slots IS NULL OR slots < 1 OR slots_exact IS NULL OR slot_from IS NULL OR slot_to IS NULL
                OR slot_from > slot_to OR scheduled_for IS NOT NULL OR (verdict = 'missed' AND slot_from <> slot_to)))
       OR (verdict NOT IN ('collapsed', 'missed', 'repeated') AND (slots IS NOT NULL OR slot_from IS NOT NULL))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_cards_crowd
-- The newest wait; older ones are dismissed for them.
SELECT q.*, count(*) OVER () FROM (
    SELECT trigger_id, count(*) AS n FROM missed_card WHERE state = 'pending' GROUP BY trigger_id HAVING count(*) > :cards
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_cards
-- A card is of a line that says the slot was missed; executed, it names what it became, whose line is of that slot.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.trigger_id, w.slot, w.what FROM (
        SELECT c.id, c.trigger_id, c.slot,
               CASE WHEN c.state NOT IN ('pending', 'executed', 'dismissed') THEN 'has the state ' || c.state
                    WHEN (c.state = 'pending') <> (c.decided_at IS NULL) THEN 'is ' || c.state || ', and its end says otherwise'
                    WHEN (c.state = 'executed') <> (c.run_id IS NOT NULL) THEN 'is ' || c.state || ' and its run says otherwise'
                    WHEN f.id IS NULL AND c.created_at >= :ledger_pruned_before THEN 'lacks its line'
                    WHEN f.verdict <> 'missed' OR f.slot_from <> c.slot OR f.trigger_id <> c.trigger_id
                         THEN 'is of another line'
                    WHEN c.state = 'executed' AND c.decided_at >= :ledger_pruned_before AND NOT EXISTS (
                        SELECT 1 FROM firing e WHERE e.run_id = c.run_id AND e.automation_id = c.automation_id
                        AND e.arrived_at >= c.decided_at - :skew AND e.scheduled_for = c.slot)
                         THEN 'became what has no line of its slot'
                    WHEN c.state = 'pending' AND a.state = 'removed' THEN 'waits, and its automation was removed' END AS what
        FROM missed_card c LEFT JOIN firing f ON f.id = c.firing_id LEFT JOIN automation a ON a.id = c.automation_id
    ) AS w WHERE w.what IS NOT NULL
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_caught_up_twice
-- One run makes up for a gap, unless each is to.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.trigger_id, r.queued_at, count(*) AS n FROM run r
    JOIN trigger t ON t.id = r.trigger_id JOIN automation a ON a.id = r.automation_id
    WHERE r.catchup = 1 AND r.source = 'clock' AND r.version = a.version AND t.policy NOT LIKE '%"run_all"%'
    GROUP BY r.trigger_id, r.queued_at HAVING count(*) > 1
) AS q ORDER BY 1, 2 LIMIT 10;

-- B. The armed slot -------------------------------------------------------------------------------------------------

-- name: audit_overdue
-- `:evaluated_before` is a while before the due set was last evaluated whole; `:boot_at` is 0 unless a living desk asks.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.next_fire_at FROM trigger t
    WHERE t.next_fire_at IS NOT NULL AND t.error = ''
      AND (t.next_fire_at < :evaluated_before
           OR (:boot_at > 0 AND (t.next_fire_at <= :boot_at OR t.next_fire_at < :lag_ago)))
) AS q ORDER BY 2, 1 LIMIT 10;

-- name: audit_armed_inert
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.next_fire_at,
           CASE WHEN t.schedule IS NULL THEN 'has no schedule' WHEN t.removed_at IS NOT NULL THEN 'is removed'
                WHEN t.enabled = 0 THEN 'is switched off' WHEN t.error <> '' THEN 'is quarantined'
                ELSE 'belongs to an automation that is ' || a.state END AS why
    FROM trigger t JOIN automation a ON a.id = t.automation_id
    WHERE t.next_fire_at IS NOT NULL
      AND (t.schedule IS NULL OR t.removed_at IS NOT NULL OR t.enabled = 0 OR t.error <> '' OR a.state <> 'active')
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_armed_once_more
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.next_fire_at FROM trigger t
    WHERE t.next_fire_at IS NOT NULL AND t.schedule LIKE '["at",%'
      AND EXISTS (SELECT 1 FROM firing f WHERE f.trigger_id = t.id AND f.dedupe_key IS NOT NULL AND f.source = 'clock'
                  AND f.version = t.version AND coalesce(f.scheduled_for, f.slot_to) IS NOT NULL)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_armed_in_the_past
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.next_fire_at, a.answered FROM trigger t
    JOIN (SELECT f.trigger_id, f.version, max(coalesce(f.scheduled_for, f.slot_to)) AS answered FROM firing f
          WHERE f.source = 'clock' AND f.verdict <> 'repeated' GROUP BY f.trigger_id, f.version) AS a
      ON a.trigger_id = t.id AND a.version = t.version
    WHERE t.next_fire_at <= a.answered AND t.schedule NOT LIKE '["at",%'
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_answered_early
SELECT q.*, count(*) OVER () FROM (
    SELECT id, coalesce(scheduled_for, slot_to) AS slot, arrived_at FROM firing
    WHERE source = 'clock' AND arrived_at < coalesce(scheduled_for, slot_to)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_started_early
SELECT q.*, count(*) OVER () FROM (
    SELECT id, scheduled_for, started_at FROM run WHERE started_at < scheduled_for - :skew
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_ran_late
SELECT q.*, count(*) OVER () FROM (
    SELECT id, scheduled_for, started_at, ran_late FROM run
    WHERE ran_late <> CASE WHEN started_at IS NOT NULL AND (catchup = 1 OR started_at - scheduled_for > 300000000)
                           THEN 1 ELSE 0 END
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_versions_chain
-- Spans of one trigger's schedules follow one another; only the last may be open.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.trigger_id, w.version, w.valid_from, w.valid_to FROM (
        SELECT trigger_id, version, valid_from, valid_to,
               lag(version) OVER v AS version_before, lag(valid_to) OVER v AS ended_before
        FROM trigger_version WINDOW v AS (PARTITION BY trigger_id ORDER BY version)
    ) AS w
    WHERE w.valid_to < w.valid_from
       OR (w.version_before IS NOT NULL AND (w.ended_before IS NULL OR w.ended_before > w.valid_from))
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_version_in_force
-- What owes slots has its schedule in force under the number it names; what is off or removed owes none.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.version, v.version AS open_version,
           CASE WHEN t.enabled = 1 AND t.removed_at IS NULL AND t.error = '' AND t.schedule IS NOT NULL
                     AND a.state <> 'removed' THEN 1 ELSE 0 END AS owes
    FROM trigger t JOIN automation a ON a.id = t.automation_id
    LEFT JOIN trigger_version v ON v.trigger_id = t.id AND v.valid_to IS NULL
    WHERE t.kind = 'clock'
      AND ((t.enabled = 1 AND t.removed_at IS NULL AND t.error = '' AND t.schedule IS NOT NULL AND a.state <> 'removed'
            AND (v.version IS NULL OR v.version <> t.version OR v.schedule <> t.schedule))
           OR ((t.enabled = 0 OR t.removed_at IS NOT NULL OR a.state = 'removed') AND v.version IS NOT NULL))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_pauses
-- One span after another, and one is open exactly while the automation sleeps.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.automation_id, w.paused_from, w.paused_to, 'meets another' AS what FROM (
        SELECT automation_id, paused_from, paused_to, lag(paused_from) OVER v AS from_before,
               lag(paused_to) OVER v AS to_before
        FROM pause WINDOW v AS (PARTITION BY automation_id ORDER BY paused_from)
    ) AS w
    WHERE w.paused_to < w.paused_from
       OR (w.from_before IS NOT NULL AND (w.to_before IS NULL OR w.to_before > w.paused_from))
    UNION ALL
    SELECT p.automation_id, p.paused_from, p.paused_to, 'is open, and the automation is ' || a.state
    FROM pause p JOIN automation a ON a.id = p.automation_id
    WHERE p.paused_to IS NULL AND a.state IN ('active', 'completed', 'removed')
      AND NOT (a.state = 'completed' AND p.reason = 'max_runs')
    UNION ALL
    SELECT a.id, a.state_at, NULL, 'is not written down, and the automation is ' || a.state FROM automation a
    WHERE a.state IN ('paused', 'auto_paused', 'proposed', 'expired')
      AND NOT EXISTS (SELECT 1 FROM pause p WHERE p.automation_id = a.id AND p.paused_to IS NULL)
) AS q ORDER BY 1, 2 LIMIT 10;

-- C. The course of a run -------------------------------------------------------------------------------------------

-- name: audit_run_groups
-- Groups: the words that runs bear together, and one run of each.
SELECT state, outcome, reason, error_class, blocked, cancel_reason, count(*), min(id) FROM run
GROUP BY state, outcome, reason, error_class, blocked, cancel_reason;

-- name: audit_transition_groups
-- Groups: the steps that runs took.
SELECT from_state, to_state, reason, error_class, count(*), min(run_id) FROM transition
GROUP BY from_state, to_state, reason, error_class;

-- name: audit_delivery_word_groups
-- Groups.
SELECT state, reason, count(*), min(id) FROM delivery GROUP BY state, reason;

-- name: audit_other_word_groups
-- Groups: the words of smaller tables.
SELECT 'automation.state', state, count(*), min(id) FROM automation GROUP BY state
UNION ALL SELECT 'delivery_try.result', result, count(*), min(delivery_id) FROM delivery_try GROUP BY result
UNION ALL SELECT 'effect.state', state, count(*), min(run_id) FROM effect GROUP BY state;

-- name: audit_ended_once
SELECT q.*, count(*) OVER () FROM (
    SELECT run_id, count(*) AS steps,
           sum(CASE WHEN to_state IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped') THEN 1 ELSE 0 END) AS ends
    FROM transition GROUP BY run_id
    HAVING sum(CASE WHEN to_state IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped') THEN 1 ELSE 0 END) > 1
        OR min(CASE WHEN to_state IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped') THEN seq END) < max(seq)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_row_and_log
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.state, r.seq, t.to_state FROM run r LEFT JOIN transition t ON t.run_id = r.id AND t.seq = r.seq
    WHERE t.run_id IS NULL OR t.to_state <> r.state
       OR EXISTS (SELECT 1 FROM transition l WHERE l.run_id = r.id AND l.seq > r.seq)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_log_chain
SELECT q.*, count(*) OVER () FROM (
    SELECT w.run_id, w.seq, w.from_state, w.state_before, w.at, w.at_before FROM (
        SELECT run_id, seq, from_state, at, lag(to_state) OVER v AS state_before, lag(seq) OVER v AS seq_before,
               lag(at) OVER v AS at_before
        FROM transition WINDOW v AS (PARTITION BY run_id ORDER BY seq)
    ) AS w
    WHERE w.seq <> coalesce(w.seq_before, 0) + 1 OR w.from_state IS DISTINCT FROM w.state_before
       OR w.at < w.at_before - :skew
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_instants
-- The instants on a run are those of its log: written in the same transactions, so equal to the microsecond.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.state,
           CASE WHEN w.queued_at IS DISTINCT FROM w.first_at THEN 'queued_at'
                WHEN w.started_at IS DISTINCT FROM w.claimed_first THEN 'started_at'
                WHEN w.attempt_at IS DISTINCT FROM w.claimed_last THEN 'attempt_at' ELSE 'ended_at' END AS what
    FROM (
        SELECT r.id, r.state, r.queued_at, r.started_at, r.attempt_at, r.ended_at, l.at AS last_at,
               (SELECT t.at FROM transition t WHERE t.run_id = r.id ORDER BY t.seq LIMIT 1) AS first_at,
               (SELECT t.at FROM transition t WHERE t.run_id = r.id AND t.to_state = 'running'
                ORDER BY t.seq LIMIT 1) AS claimed_first,
               (SELECT t.at FROM transition t WHERE t.run_id = r.id AND t.to_state = 'running'
                ORDER BY t.seq DESC LIMIT 1) AS claimed_last
        FROM run r LEFT JOIN transition l ON l.run_id = r.id AND l.seq = r.seq
    ) AS w
    WHERE w.queued_at IS DISTINCT FROM w.first_at OR w.started_at IS DISTINCT FROM w.claimed_first
       OR w.attempt_at IS DISTINCT FROM w.claimed_last
       OR w.ended_at IS DISTINCT FROM
          CASE WHEN w.state IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped') THEN w.last_at END
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_running_unheld
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.worker, r.token, r.attempt FROM run r LEFT JOIN worker w ON w.id = r.worker
    WHERE r.state = 'running' AND (w.id IS NULL OR r.token < 1 OR r.attempt < 1 OR r.attempt_at IS NULL)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_running_under_the_dead
-- What an ended worker held is taken back within a sweep.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.worker, w.ended_at FROM run r JOIN worker w ON w.id = r.worker
    WHERE r.state = 'running' AND w.ended_at < :lag_ago
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_running_since_before_boot
-- A boot takes it back before anything new is admitted, without that delay.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.worker, w.ended_at FROM run r JOIN worker w ON w.id = r.worker
    WHERE r.state = 'running' AND w.ended_at >= :lag_ago AND w.ended_at <= :boot_at
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_queue_stands
-- `:live_since` is since when somebody has been there to claim; 0 when nobody is, or the desk is stopped. A line that
-- moves is a line: only where a workspace's queue stands still is a wait without a cause.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.automation_id, r.run_after, r.blocked FROM run r JOIN automation a ON a.id = r.automation_id
    WHERE :live_since > 0 AND :live_since < :stale_ago
      AND r.state IN ('queued', 'held') AND (r.blocked IS NULL OR r.blocked = 'time')
      AND r.run_after < :stale_ago AND a.state_at < :stale_ago
      AND r.workspace NOT IN (SELECT m.workspace FROM run m
                              WHERE m.attempt_at > :stale_ago OR m.ended_at > :stale_ago)
) AS q ORDER BY 3, 1 LIMIT 10;

-- name: audit_waits_for_nobody
-- Whoever waits for another run of its automation has one to wait for that does not itself wait for another; for a place
-- under the ceiling, one that is there or about to be.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.automation_id, r.blocked FROM run r
    LEFT JOIN (SELECT DISTINCT automation_id FROM run
               WHERE state IN ('queued', 'running', 'held', 'lost')
                 AND (blocked IS NULL OR blocked NOT IN ('overlap', 'concurrency'))) AS g
      ON g.automation_id = r.automation_id
    LEFT JOIN (SELECT DISTINCT automation_id FROM run
               WHERE state IN ('queued', 'running', 'held', 'lost')
                 AND (state = 'running' OR state = 'queued' AND blocked IS NULL)) AS p
      ON p.automation_id = r.automation_id
    WHERE r.state = 'queued' AND (r.blocked IN ('overlap', 'concurrency') AND g.automation_id IS NULL
                                  OR r.blocked = 'concurrency' AND p.automation_id IS NULL)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_held_by_no_pause
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.automation_id, a.state FROM run r JOIN automation a ON a.id = r.automation_id
    WHERE r.state = 'queued' AND r.blocked = 'paused'
      AND a.state NOT IN ('proposed', 'paused', 'auto_paused', 'config_error')
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_left_lost
-- Lost is a passage: whoever writes it says in the same transaction what becomes of the run.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.worker, t.at FROM run r LEFT JOIN transition t ON t.run_id = r.id AND t.seq = r.seq
    WHERE r.state = 'lost' AND (t.at IS NULL OR t.at < :lag_ago)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_running
-- What runs under a worker that has not ended; a page.
SELECT r.id, r.automation_id, r.version, r.attempt_at FROM run r JOIN worker w ON w.id = r.worker
WHERE r.state = 'running' AND w.ended_at IS NULL AND r.attempt_at < :started_before AND r.id > :after
ORDER BY r.id LIMIT :room;

-- D. Claims -----------------------------------------------------------------------------------------------------------

-- name: audit_tokens_grow
SELECT q.*, count(*) OVER () FROM (
    SELECT w.run_id, w.seq, w.token, w.token_before FROM (
        SELECT run_id, seq, token, lag(token) OVER (PARTITION BY run_id ORDER BY seq) AS token_before
        FROM transition WHERE to_state = 'running'
    ) AS w WHERE w.token IS NULL OR w.token <= w.token_before
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_stale_writes
-- Whoever takes a run out of running names the claim that put it there.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.run_id, t.seq, t.token, t.worker, p.token AS claim, p.worker AS holder
    FROM transition t JOIN transition p ON p.run_id = t.run_id AND p.seq = t.seq - 1
    WHERE t.from_state = 'running'
      AND (t.token IS DISTINCT FROM p.token OR t.worker IS DISTINCT FROM p.worker OR t.attempt <> p.attempt)
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_stale_effects
-- An effect was written under a claim, between its beginning and its end.
SELECT q.*, count(*) OVER () FROM (
    SELECT e.run_id, e.key, e.token FROM effect e
    LEFT JOIN transition c ON c.run_id = e.run_id AND c.to_state = 'running' AND c.token = e.token
    LEFT JOIN transition x ON x.run_id = c.run_id AND x.seq = c.seq + 1
    WHERE c.run_id IS NULL OR c.attempt <> e.attempt OR e.intended_at < c.at - :skew
       OR e.intended_at > x.at + :skew OR e.done_at > x.at + :skew
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_not_alone
-- Under `skip` a run is admitted, under `queue` and `replace` it starts, only when none admitted before it is going.
-- Judged under the policy in force. A run that waited for a person's review stood in nobody's way meanwhile.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.trigger_id, w.began, w.going FROM (
        SELECT r.id, r.trigger_id,
               CASE WHEN r.source <> 'manual' AND r.version = a.version AND t.policy NOT LIKE '["parallel",%'
                    THEN CASE WHEN t.policy LIKE '["skip",%' THEN r.queued_at ELSE r.started_at END END AS began,
               max(CASE WHEN v.run_id IS NULL THEN coalesce(r.ended_at, 9000000000000000000) END) OVER (
                   PARTITION BY r.automation_id ORDER BY r.queued_at
                   RANGE BETWEEN UNBOUNDED PRECEDING AND 1000001 PRECEDING) AS going
        FROM run r JOIN trigger t ON t.id = r.trigger_id JOIN automation a ON a.id = r.automation_id
        LEFT JOIN (SELECT DISTINCT run_id FROM transition WHERE to_state = 'review') AS v ON v.run_id = r.id
    ) AS w WHERE w.going > w.began + :skew
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_out_of_turn
-- Under `queue`, runs of one trigger start in the order in which they were admitted.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.trigger_id, w.started_at, w.started_before FROM (
        SELECT r.id, r.trigger_id, r.started_at,
               max(r.started_at) OVER (PARTITION BY r.trigger_id ORDER BY r.queued_at
                                       RANGE BETWEEN UNBOUNDED PRECEDING AND 1000001 PRECEDING) AS started_before
        FROM run r JOIN trigger t ON t.id = r.trigger_id JOIN automation a ON a.id = r.automation_id
        WHERE t.policy LIKE '["queue",%' AND r.source <> 'manual' AND r.version = a.version
    ) AS w WHERE w.started_before > w.started_at + :skew
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_survivors
-- Under `replace` only the newest waits.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.trigger_id, count(*) AS n FROM run r
    JOIN trigger t ON t.id = r.trigger_id JOIN automation a ON a.id = r.automation_id
    WHERE r.state = 'queued' AND r.blocked = 'overlap' AND t.policy LIKE '["replace",%' AND r.source <> 'manual'
      AND r.version = a.version
    GROUP BY r.trigger_id HAVING count(*) > 1
) AS q ORDER BY 1 LIMIT 10;

-- E. Attempts and effects -----------------------------------------------------------------------------------------------

-- name: audit_effect_shape
SELECT q.*, count(*) OVER () FROM (
    SELECT run_id, key, state, intended_at, done_at FROM effect
    WHERE (state = 'done' AND done_at IS NULL) OR (state <> 'done' AND done_at IS NOT NULL)
       OR done_at < intended_at - :skew
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_doubtful_repeats
-- What may have happened is not tried again unasked after its attempt was cut short.
SELECT q.*, count(*) OVER () FROM (
    SELECT e.run_id, e.key, e.name FROM effect e
    JOIN transition x ON x.run_id = e.run_id AND x.from_state = 'running' AND x.token = e.token
    LEFT JOIN transition n ON n.run_id = x.run_id AND n.seq = x.seq + 1
    WHERE e.state = 'intended' AND NOT (e.name = 'started' AND e.key = 'started:' || e.token)
      AND ((x.to_state = 'queued' AND x.reason = 'shutdown') OR (x.to_state = 'lost' AND n.to_state = 'queued'))
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_cut_short_groups
-- Groups: attempts with a start mark that were cut short and went on by themselves, by the definition they ran with.
SELECT r.automation_id, r.version, count(*), min(r.id) FROM effect e
JOIN run r ON r.id = e.run_id
JOIN transition x ON x.run_id = e.run_id AND x.from_state = 'running' AND x.token = e.token
LEFT JOIN transition n ON n.run_id = x.run_id AND n.seq = x.seq + 1
WHERE e.name = 'started' AND e.key = 'started:' || e.token
  AND ((x.to_state = 'queued' AND x.reason = 'shutdown') OR (x.to_state = 'lost' AND n.to_state = 'queued'))
GROUP BY r.automation_id, r.version;

-- name: audit_left_marks
-- An attempt that ended takes its start mark and its child's line with it, unless it was lost or set aside.
SELECT q.*, count(*) OVER () FROM (
    SELECT e.run_id, 'its start mark' AS what, e.token FROM effect e
    JOIN transition x ON x.run_id = e.run_id AND x.from_state = 'running' AND x.token = e.token
    WHERE e.name = 'started' AND e.key = 'started:' || e.token AND e.state = 'intended'
      AND x.to_state NOT IN ('lost', 'review')
    UNION ALL
    SELECT c.run_id, 'the line of its child', c.token FROM child c
    JOIN transition x ON x.run_id = c.run_id AND x.from_state = 'running' AND x.token = c.token
    WHERE x.to_state NOT IN ('lost', 'review')
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_attempts_bounded
SELECT q.*, count(*) OVER () FROM (
    SELECT id, state, attempt, attempts FROM run
    WHERE attempt < 0 OR attempt > attempts OR (state IN ('queued', 'held') AND attempt >= attempts)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_attempts_and_log
-- A hold, a shutdown and a start that failed give the attempt back; nothing gives a token back.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.token, r.attempt, coalesce(c.claims, 0) AS claims, coalesce(c.given_back, 0) AS given_back
    FROM run r LEFT JOIN (
        SELECT run_id, sum(CASE WHEN to_state = 'running' THEN 1 ELSE 0 END) AS claims,
               sum(CASE WHEN from_state = 'running' AND (to_state = 'held' OR (to_state = 'queued'
                             AND reason IN ('shutdown', 'not_started') AND error_class IS NULL))
                        THEN 1 ELSE 0 END) AS given_back
        FROM transition GROUP BY run_id
    ) AS c ON c.run_id = r.id
    WHERE r.token <> coalesce(c.claims, 0) OR r.attempt <> coalesce(c.claims, 0) - coalesce(c.given_back, 0)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_retry_groups
-- Groups: attempts that failed and were tried again, by the definition they ran with and the class of error.
SELECT r.automation_id, r.version, t.error_class, count(*), min(r.id) FROM transition t
JOIN run r ON r.id = t.run_id
WHERE t.from_state = 'running' AND t.to_state = 'queued' AND t.reason IS DISTINCT FROM 'shutdown'
  AND (t.reason IS DISTINCT FROM 'not_started' OR t.error_class IS NOT NULL)
GROUP BY r.automation_id, r.version, t.error_class;

-- name: audit_dead_letters
-- What failed for good, and was not dismissed by a person or with its automation, is a dead letter, announced; nothing else is.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.state, CASE WHEN r.state NOT IN ('failed', 'timed_out') THEN 'is one, and did not fail'
                               WHEN r.dead_at IS NULL THEN 'is none' ELSE 'was not announced' END AS what
    FROM run r
    LEFT JOIN (SELECT DISTINCT run_id FROM inbox WHERE kind = 'dead_letter') AS n ON n.run_id = r.id
    WHERE (r.dead_at IS NOT NULL AND (r.state NOT IN ('failed', 'timed_out')
                                      OR (n.run_id IS NULL AND r.dead_at >= :ledger_pruned_before)))
       OR (r.dead_at IS NULL AND r.state IN ('failed', 'timed_out')
           AND coalesce(r.reason, '') NOT IN ('dismissed', 'deleted'))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_backoff
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.run_after, t.at FROM run r JOIN transition t ON t.run_id = r.id AND t.seq = r.seq
    WHERE t.from_state = 'running' AND r.state IN ('queued', 'held')
      AND t.reason IS DISTINCT FROM 'shutdown' AND r.run_after <= t.at
      AND t.at > r.attempt_at  -- where the wall clock stepped back meanwhile, the wait began before it
      AND NOT EXISTS (SELECT 1 FROM gap g WHERE g.kind = 'step_back' AND g.gap_to >= t.at)  -- and it went with the clock
      AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.run_id = r.id AND e.name <> 'started'
                      AND t.at IN (e.intended_at, e.done_at))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_unannounced
-- What a person has to decide was put before one.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, 'waits for a review' AS what FROM run r
    LEFT JOIN (SELECT DISTINCT run_id FROM inbox WHERE kind = 'review') AS n ON n.run_id = r.id
    WHERE r.state = 'review' AND n.run_id IS NULL
    UNION ALL
    SELECT d.id, 'was given up' FROM delivery d
    LEFT JOIN (SELECT DISTINCT run_id FROM inbox WHERE kind = 'given_up') AS n ON n.run_id = d.run_id
    WHERE d.state = 'given_up' AND d.best_effort = 0 AND d.alert IS NULL AND n.run_id IS NULL AND d.ended_at >= :ledger_pruned_before
      AND NOT EXISTS (  -- in the message of its incident
          SELECT 1 FROM incident i JOIN inbox m ON m.id = 'inb_' || substr(i.id, 5)
          WHERE i.route = d.lane AND i.kind = 'delivery' AND d.ended_at BETWEEN i.first_at AND i.last_at)
) AS q ORDER BY 1 LIMIT 10;

-- F. Delivery ------------------------------------------------------------------------------------------------------------

-- name: audit_ended_groups
-- Groups of a page: ended runs of its automations that had something to deliver, by definition and outcome.
SELECT run.automation_id, run.version, run.outcome, count(*)
FROM @rows(automation_id text) AS r JOIN run ON run.automation_id = r.automation_id
WHERE run.ended_at IS NOT NULL AND run.outcome IS NOT NULL AND run.outcome <> 'noop'
GROUP BY run.automation_id, run.version, run.outcome;

-- name: audit_delivery_groups
-- Groups of a page: the deliveries there are, in the same terms.
SELECT run.automation_id, run.version, CASE WHEN run.ended_at IS NULL THEN '' ELSE coalesce(run.outcome, '') END,
       d.destination, d.kind, count(DISTINCT run.id), min(d.id)
FROM @rows(automation_id text) AS r JOIN run ON run.automation_id = r.automation_id
JOIN delivery d ON d.run_id = run.id
GROUP BY run.automation_id, run.version, CASE WHEN run.ended_at IS NULL THEN '' ELSE coalesce(run.outcome, '') END,
         d.destination, d.kind;

-- name: audit_undelivered
-- The runs of a group that lack one of their deliveries.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id FROM run r
    WHERE r.automation_id = :automation_id AND r.version = :version AND r.outcome = :outcome AND r.ended_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.run_id = r.id AND d.destination = :destination AND d.kind = :kind)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_delivered_twice
SELECT q.*, count(*) OVER () FROM (
    SELECT run_id, destination, count(*) AS n FROM delivery WHERE alert IS NULL
    GROUP BY run_id, destination HAVING count(*) > 1
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_events_differ
SELECT q.*, count(*) OVER () FROM (
    SELECT t.delivery_id, count(DISTINCT t.body_hash) AS bodies,
           sum(CASE WHEN t.event_id <> d.event_id THEN 1 ELSE 0 END) AS strangers
    FROM delivery_try t JOIN delivery d ON d.id = t.delivery_id
    GROUP BY t.delivery_id
    HAVING count(DISTINCT t.body_hash) > 1 OR sum(CASE WHEN t.event_id <> d.event_id THEN 1 ELSE 0 END) > 0
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_last_try
-- What a delivery says of itself is what its last try says; what is delivered is left alone.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.state, w.last, w.evidence FROM (
        SELECT d.id, d.state, d.kind, d.evidence, d.reason, d.tries - d.tries_before AS counted,
               (SELECT t.result FROM delivery_try t WHERE t.delivery_id = d.id ORDER BY t.n DESC LIMIT 1) AS last
        FROM delivery d
    ) AS w
    WHERE (w.state = 'delivered' AND w.evidence = '')
       OR (w.state = 'delivered' AND w.kind NOT IN ('announce', 'silent') AND w.last IS DISTINCT FROM 'delivered')
       OR (w.state = 'unverified' AND w.last IS DISTINCT FROM 'unverified')
       OR (w.state = 'given_up' AND (w.last IS NULL OR w.last NOT IN ('permanent', 'transient')))
       OR (w.state = 'given_up' AND w.reason = 'gave_up' AND w.counted < :delivery_tries)
    UNION ALL
    SELECT DISTINCT a.delivery_id, 'delivered', b.result, '' FROM delivery_try a
    JOIN delivery_try b ON b.delivery_id = a.delivery_id AND b.n > a.n
    WHERE a.result = 'delivered'
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_tries_counted
-- A try that a dead worker made left no line, so there may be fewer lines than tries, never more. One that was given back
-- has no line and is not counted, and its token is used up.
SELECT q.*, count(*) OVER () FROM (
    SELECT d.id, d.tries, d.token, coalesce(t.n, 0) AS lines, t.first, t.last FROM delivery d
    LEFT JOIN (SELECT delivery_id, count(*) AS n, min(n) AS first, max(n) AS last FROM delivery_try GROUP BY delivery_id) AS t
      ON t.delivery_id = d.id
    WHERE d.tries > d.token OR d.tries_before > d.tries OR t.n > d.tries OR t.last > d.tries OR t.first < 1
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_delivery_shape
SELECT q.*, count(*) OVER () FROM (
    SELECT id, state, next_try_at, ended_at FROM delivery
    WHERE (state = 'pending' AND (next_try_at IS NULL OR ended_at IS NOT NULL))
       OR (state = 'sending' AND (worker IS NULL OR ended_at IS NOT NULL))
       OR (state NOT IN ('pending', 'sending') AND (ended_at IS NULL OR next_try_at IS NOT NULL))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_delivery_stands
SELECT q.*, count(*) OVER () FROM (
    SELECT id, lane, next_try_at FROM delivery
    WHERE state = 'pending' AND :live_since > 0 AND :live_since < :hour_ago
      AND next_try_at < :hour_ago
) AS q ORDER BY 3, 1 LIMIT 10;

-- name: audit_sending_under_the_dead
SELECT q.*, count(*) OVER () FROM (
    SELECT d.id, d.worker, w.ended_at FROM delivery d LEFT JOIN worker w ON w.id = d.worker
    WHERE d.state = 'sending' AND (w.id IS NULL OR w.ended_at < :lag_ago)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_delivery_blamed
SELECT q.*, count(*) OVER () FROM (
    SELECT id, state, reason FROM run WHERE reason IN ('rejected_by_receiver', 'gave_up', 'unverified')
) AS q ORDER BY 1 LIMIT 10;

-- G. Limits ---------------------------------------------------------------------------------------------------------------

-- name: audit_over_ceiling
-- A page: `(automation, version in force, ceiling)`. Each admission looks back over its own hour: as many runs back as
-- the ceiling allows is a run from before it. A second short of an hour, because several machines may admit.
SELECT w.automation_id, w.id, w.queued_at, w.reached, w.per_hour FROM (
    SELECT run.automation_id, run.id, run.version AS ran, run.queued_at, r.version, r.per_hour,
           lag(run.queued_at, CAST(r.per_hour AS INTEGER)) OVER (
               PARTITION BY run.automation_id ORDER BY run.queued_at, run.id) AS reached
    FROM @rows(automation_id text, version int, per_hour int) AS r
    JOIN run ON run.automation_id = r.automation_id
    WHERE run.source <> 'manual'
) AS w
WHERE w.ran = w.version AND w.queued_at - w.reached < 3599000000 ORDER BY w.automation_id, w.queued_at, w.id;

-- name: audit_too_warm
-- Admission looks back at the last attempt's start. Judged where the cooldown was in force for both.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.at, w.started, w.cooldown FROM (
        SELECT e.id, e.at, e.cooldown, e.admitted,
               max(CASE WHEN e.admitted = 0 THEN e.at END) OVER (
                   PARTITION BY e.automation_id ORDER BY e.at RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS started
        FROM (SELECT run.automation_id, run.id, run.queued_at AS at, a.cooldown, 1 AS admitted
              FROM run JOIN automation a ON a.id = run.automation_id AND a.version = run.version
              WHERE a.cooldown > 0 AND run.source <> 'manual'
              UNION ALL
              SELECT run.automation_id, run.id, t.at, a.cooldown, 0
              FROM run JOIN automation a ON a.id = run.automation_id AND a.version = run.version
              JOIN transition t ON t.run_id = run.id AND t.to_state = 'running'
              WHERE a.cooldown > 0 AND run.source <> 'manual') AS e
    ) AS w WHERE w.admitted = 1 AND w.at - w.started < w.cooldown - :skew
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_over_concurrency
SELECT q.*, count(*) OVER () FROM (
    SELECT a.id, a.concurrent, count(*) AS n FROM automation a
    JOIN run r ON r.automation_id = a.id AND r.state = 'running' AND r.version = a.version
    WHERE a.concurrent IS NOT NULL AND a.updated_at < :lag_ago
    GROUP BY a.id, a.concurrent HAVING count(*) > a.concurrent
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_lines_counted
-- A trigger counts its lines for life; where none has passed its retention, that is how many there are.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.firings, coalesce(f.n, 0) AS lines FROM trigger t
    LEFT JOIN (SELECT trigger_id, count(*) AS n FROM firing GROUP BY trigger_id) AS f ON f.trigger_id = t.id
    WHERE t.firings < coalesce(f.n, 0)
       OR (t.firings > coalesce(f.n, 0) AND t.created_at >= :ledger_pruned_before)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_conserved
-- Runs created are runs that are there, and runs that ended and were pruned. Nothing was lost, nothing was made up.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.id, t.runs, coalesce(r.n, 0) AS there, coalesce(g.n, 0) AS gone FROM trigger t
    LEFT JOIN (SELECT trigger_id, count(*) AS n FROM run GROUP BY trigger_id) AS r ON r.trigger_id = t.id
    LEFT JOIN (SELECT f.trigger_id, count(*) AS n FROM firing f LEFT JOIN run ON run.id = f.run_id
               WHERE f.verdict = 'admitted' AND run.id IS NULL GROUP BY f.trigger_id) AS g ON g.trigger_id = t.id
    WHERE t.runs < coalesce(r.n, 0) + coalesce(g.n, 0)
       OR (t.runs > coalesce(r.n, 0) + coalesce(g.n, 0) AND t.created_at >= :ledger_pruned_before)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_origin
-- A run carries its firing's root and depth; only what a run caused has them.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.root, r.depth FROM run r JOIN firing f ON f.id = r.firing_id
    WHERE r.root IS DISTINCT FROM f.root OR r.depth <> f.depth OR r.depth < 0 OR (r.root IS NULL AND r.depth > 0)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_keys
-- The key is the external id, where the verdict keeps it: a clock's always, a repeat's never, and not where the sender
-- may try again. Who names no id is never remembered.
SELECT q.*, count(*) OVER () FROM (
    SELECT id, trigger_id, external_id, dedupe_key, verdict FROM firing
    WHERE external_id = '' OR dedupe_key <> external_id
       OR (verdict = 'repeated' AND dedupe_key IS NOT NULL)
       OR (verdict <> 'repeated' AND source = 'clock' AND dedupe_key IS NULL)
       OR (source <> 'clock' AND reason IN ('hourly_ceiling', 'queue_full', 'quiet_hours') AND dedupe_key IS NOT NULL)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_key_twice
SELECT q.*, count(*) OVER () FROM (
    SELECT trigger_id, dedupe_key, count(*) AS n FROM firing WHERE dedupe_key IS NOT NULL
    GROUP BY trigger_id, dedupe_key HAVING count(*) > 1
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_first_telling
-- A repeat names the run that the first telling became, and there was a first telling.
SELECT q.*, count(*) OVER () FROM (
    SELECT f.id, f.external_id, f.run_id, o.run_id AS first_run FROM firing f
    LEFT JOIN firing o ON o.trigger_id = f.trigger_id AND o.dedupe_key = f.external_id
                      AND o.arrived_at <= f.arrived_at + :skew
    WHERE f.verdict = 'repeated'
      AND ((o.id IS NOT NULL AND o.run_id IS DISTINCT FROM f.run_id)
           OR (o.id IS NULL AND :ledger_pruned_before = 0))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_after_removal
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.queued_at, r.started_at, a.state_at AS removed_at FROM run r
    JOIN automation a ON a.id = r.automation_id AND a.state = 'removed'
    WHERE r.queued_at > a.state_at + :lag OR r.started_at > a.state_at + :lag
    UNION ALL
    SELECT r.id, r.queued_at, r.started_at, t.removed_at FROM run r
    JOIN trigger t ON t.id = r.trigger_id AND t.removed_at IS NOT NULL
    JOIN automation a ON a.id = r.automation_id AND a.state <> 'removed'
    WHERE r.queued_at > t.removed_at + :lag
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_admitted_asleep
-- A pause admits nothing but by hand.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.queued_at, p.paused_from, p.paused_to FROM pause p
    JOIN run r ON r.automation_id = p.automation_id AND r.queued_at > p.paused_from + :lag
    WHERE r.source <> 'manual' AND r.queued_at < coalesce(p.paused_to - :lag, 9000000000000000000)
      AND (p.reason <> 'max_runs' OR r.source = 'clock')  -- only its schedules are over
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_folded
-- Whoever waited for others like it has counted those that came, and carries what one of its arrivals said.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.merged, coalesce(m.lines, 0) AS lines, r.carries FROM run r
    LEFT JOIN (SELECT run_id, count(*) AS lines FROM firing WHERE verdict = 'merged' GROUP BY run_id) AS m
      ON m.run_id = r.id
    WHERE r.queued_at > :ledger_pruned_before
      AND (r.merged <> coalesce(m.lines, 0) OR (r.merged > 0 AND r.merge_key IS NULL)
           OR (r.carries IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM firing f WHERE f.id = r.carries AND f.run_id = r.id)))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_runs_in_all
-- Where only so many runs may be started by schedules, they are counted as they are admitted.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.counted_runs, w.lines FROM (
        SELECT a.id, a.counted_runs,
               (SELECT count(*) FROM firing f WHERE f.automation_id = a.id AND f.arrived_at >= a.counted_from
                AND f.source = 'clock' AND f.verdict = 'admitted') AS lines
        FROM automation a WHERE a.counted_from > :ledger_pruned_before
    ) AS w WHERE w.counted_runs <> w.lines
) AS q ORDER BY 1 LIMIT 10;

-- H. Keeping ----------------------------------------------------------------------------------------------------------------

-- name: audit_health
-- What an automation says of its runs is what they say. `:pruned_from` is after all time where nothing tells what was
-- pruned; then only what is there can contradict it. Which of two came last nobody can tell where the wall showed the
-- same time twice.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.what FROM (
        SELECT a.id,
               CASE WHEN (g.good IS NOT NULL AND a.last_success_at IS NULL) OR g.good > a.last_success_at + :skew
                         OR (a.last_success_at >= :pruned_from
                             AND (g.good IS NULL OR a.last_success_at > g.good + :skew)) THEN 'last_success_at'
                    WHEN (g.bad IS NOT NULL AND a.last_failure_at IS NULL) OR g.bad > a.last_failure_at + :skew
                         OR (a.last_failure_at >= :pruned_from
                             AND (g.bad IS NULL OR a.last_failure_at > g.bad + :skew)) THEN 'last_failure_at'
                    WHEN (l.id IS NULL AND g.latest >= :pruned_before) OR g.latest > l.ended_at + :skew
                         OR l.automation_id <> a.id THEN 'last_run_id'
                    WHEN l.id IS NOT NULL AND a.last_outcome IS DISTINCT FROM coalesce(l.outcome, l.state)
                         THEN 'last_outcome' END AS what
        FROM automation a
        LEFT JOIN (SELECT automation_id, max(CASE WHEN state = 'succeeded' OR state = 'skipped' AND reason <> 'stale'
                                             THEN ended_at END) AS good,
                          max(CASE WHEN state IN ('failed', 'timed_out') THEN ended_at END) AS bad,
                          max(CASE WHEN reason IS DISTINCT FROM 'superseded' THEN ended_at END) AS latest
                   FROM run WHERE ended_at IS NOT NULL GROUP BY automation_id) AS g ON g.automation_id = a.id
        LEFT JOIN run l ON l.id = a.last_run_id
        WHERE NOT EXISTS (SELECT 1 FROM gap b WHERE b.kind = 'step_back' AND (
            g.good BETWEEN b.gap_from - :skew AND b.gap_to OR g.bad BETWEEN b.gap_from - :skew AND b.gap_to
            OR g.latest BETWEEN b.gap_from - :skew AND b.gap_to))
    ) AS w WHERE w.what IS NOT NULL
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_months
-- Months outlive runs. Where no run was pruned the sums agree; where some were, a month holds at least what is there.
-- A run that was replaced before it started may have been left out of the months by an earlier version.
SELECT q.*, count(*) OVER () FROM (
    SELECT a.id, CAST(coalesce(m.runs, 0) AS BIGINT) AS told, coalesce(r.ended, 0) AS ended FROM automation a
    LEFT JOIN (SELECT automation_id, sum(CASE WHEN runs BETWEEN 0 AND 1000000000000 THEN runs ELSE -1 END) AS runs, sum(CASE WHEN succeeded BETWEEN 0 AND 1000000000000 THEN succeeded ELSE -1 END) AS succeeded, sum(CASE WHEN quiet BETWEEN 0 AND 1000000000000 THEN quiet ELSE -1 END) AS quiet,
                      sum(CASE WHEN failed BETWEEN 0 AND 1000000000000 THEN failed ELSE -1 END) AS failed, sum(CASE WHEN cancelled BETWEEN 0 AND 1000000000000 THEN cancelled ELSE -1 END) AS cancelled
               FROM rollup_month GROUP BY automation_id) AS m ON m.automation_id = a.id
    LEFT JOIN (SELECT automation_id, count(*) AS n, count(ended_at) AS ended,
                      sum(CASE WHEN state = 'succeeded' THEN 1 ELSE 0 END) AS succeeded,
                      sum(CASE WHEN state = 'skipped' THEN 1 ELSE 0 END) AS quiet,
                      sum(CASE WHEN state IN ('failed', 'timed_out') THEN 1 ELSE 0 END) AS failed,
                      sum(CASE WHEN state = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
                      sum(CASE WHEN state = 'cancelled' AND reason = 'superseded' THEN 1 ELSE 0 END) AS replaced
               FROM run GROUP BY automation_id) AS r ON r.automation_id = a.id
    LEFT JOIN (SELECT automation_id, sum(CASE WHEN runs BETWEEN 0 AND 1000000000000 THEN runs ELSE -1 END) AS created FROM trigger GROUP BY automation_id) AS t
      ON t.automation_id = a.id
    WHERE coalesce(m.runs, 0) <> coalesce(m.succeeded + m.quiet + m.failed + m.cancelled, 0)
       OR coalesce(m.succeeded, 0) < coalesce(r.succeeded, 0) OR coalesce(m.quiet, 0) < coalesce(r.quiet, 0)
       OR coalesce(m.failed, 0) < coalesce(r.failed, 0)
       OR coalesce(m.cancelled, 0) < coalesce(r.cancelled - r.replaced, 0)
       OR (coalesce(t.created, 0) = coalesce(r.n, 0)
           AND (coalesce(m.succeeded, 0) > coalesce(r.succeeded, 0) OR coalesce(m.quiet, 0) > coalesce(r.quiet, 0)
                OR coalesce(m.failed, 0) > coalesce(r.failed, 0) OR coalesce(m.cancelled, 0) > coalesce(r.cancelled, 0)))
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_orphans
SELECT q.*, count(*) OVER () FROM (
    SELECT 'run' AS what, r.id AS row_id, 'trigger ' || r.trigger_id AS lacks FROM run r
        LEFT JOIN trigger t ON t.id = r.trigger_id AND t.automation_id = r.automation_id WHERE t.id IS NULL
    UNION ALL
    SELECT 'run', r.id, 'definition ' || r.automation_id FROM run r
        LEFT JOIN automation_version v ON v.automation_id = r.automation_id AND v.version = r.version
        WHERE v.version IS NULL
    UNION ALL
    SELECT 'ledger line', f.id, 'trigger ' || f.trigger_id FROM firing f
        LEFT JOIN trigger t ON t.id = f.trigger_id AND t.automation_id = f.automation_id WHERE t.id IS NULL
    UNION ALL
    SELECT 'automation', a.id, 'its definition in force' FROM automation a
        LEFT JOIN automation_version v ON v.automation_id = a.id AND v.version = a.version WHERE v.version IS NULL
    UNION ALL
    SELECT 'definition', v.automation_id, 'automation' FROM automation_version v
        LEFT JOIN automation a ON a.id = v.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'trigger', t.id, 'automation ' || t.automation_id FROM trigger t
        LEFT JOIN automation a ON a.id = t.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'schedule', v.trigger_id, 'trigger' FROM trigger_version v
        LEFT JOIN trigger t ON t.id = v.trigger_id WHERE t.id IS NULL
    UNION ALL
    SELECT 'pause', p.automation_id, 'automation' FROM pause p
        LEFT JOIN automation a ON a.id = p.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'month', m.automation_id, 'automation' FROM rollup_month m
        LEFT JOIN automation a ON a.id = m.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'change', c.id, 'automation ' || c.automation_id FROM definition_change c
        LEFT JOIN automation a ON a.id = c.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'message', i.id, 'automation ' || i.automation_id FROM inbox i
        LEFT JOIN automation a ON a.id = i.automation_id WHERE i.automation_id IS NOT NULL AND a.id IS NULL
    UNION ALL
    SELECT 'delivery', d.id, 'run ' || d.run_id FROM delivery d LEFT JOIN run r ON r.id = d.run_id
        WHERE d.alert IS NULL AND r.id IS NULL
    UNION ALL
    SELECT 'alert', d.id, 'incident ' || d.run_id FROM delivery d LEFT JOIN incident i ON i.id = d.run_id
        WHERE d.alert IS NOT NULL AND i.id IS NULL
    UNION ALL
    SELECT 'alert', d.id, 'text' FROM delivery d LEFT JOIN alert l ON l.delivery_id = d.id
        WHERE d.alert IS NOT NULL AND l.delivery_id IS NULL
    UNION ALL
    SELECT 'incident', i.id, 'automation ' || i.automation_id FROM incident i
        LEFT JOIN automation a ON a.id = i.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'decision', l.run_id, 'run' FROM dead_letter l LEFT JOIN run r ON r.id = l.run_id WHERE r.id IS NULL
    UNION ALL
    SELECT 'try', t.delivery_id, 'delivery' FROM delivery_try t
        LEFT JOIN delivery d ON d.id = t.delivery_id WHERE d.id IS NULL
    UNION ALL
    SELECT 'effect', e.run_id, 'run' FROM effect e LEFT JOIN run r ON r.id = e.run_id WHERE r.id IS NULL
    UNION ALL
    SELECT 'output', o.run_id, 'run' FROM run_output o LEFT JOIN run r ON r.id = o.run_id WHERE r.id IS NULL
    UNION ALL
    SELECT 'look', l.run_id, 'run' FROM run_look l LEFT JOIN run r ON r.id = l.run_id WHERE r.id IS NULL
    UNION ALL
    SELECT 'kept look', s.automation_id, 'automation' FROM look_state s
        LEFT JOIN automation a ON a.id = s.automation_id WHERE a.id IS NULL
    UNION ALL
    SELECT 'child', c.run_id, 'run' FROM child c LEFT JOIN run r ON r.id = c.run_id WHERE r.id IS NULL
    UNION ALL
    SELECT 'payload', p.firing_id, 'ledger line' FROM firing_payload p
        LEFT JOIN firing f ON f.id = p.firing_id WHERE f.id IS NULL AND p.firing_id >= :payload_bound
) AS q ORDER BY 1, 2 LIMIT 10;

-- name: audit_looks
-- How a look answered is how its run ended; what is kept of looks was left by a run that ended well.
SELECT q.*, count(*) OVER () FROM (
    SELECT r.id, r.state, r.reason, 'answered ' || coalesce(l.answer, 'no look') AS what
    FROM run r LEFT JOIN run_look l ON l.run_id = r.id
    WHERE (r.reason = 'precondition_unmet' AND (r.state <> 'skipped' OR l.answer IS DISTINCT FROM 'nothing'))
       OR (r.reason = 'check_failed' AND r.state = 'failed' AND l.answer IS DISTINCT FROM 'failed')
       OR (l.answer = 'nothing' AND r.state <> 'skipped')
    UNION ALL
    SELECT r.id, r.state, r.reason, 'left what its look keeps' FROM look_state s JOIN run r ON r.id = s.run_id
    WHERE r.state NOT IN ('succeeded', 'skipped')
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_quarantine
-- What cannot be read is out of the loop, and what is out of the loop was named.
SELECT q.*, count(*) OVER () FROM (
    SELECT k.key, 'is quarantined and still in the loop' AS what FROM quarantine k
    LEFT JOIN trigger t ON t.id = k.key WHERE k.subject = 'trigger' AND (t.id IS NULL OR t.error = '')
    UNION ALL
    SELECT t.id, 'is out of the loop and not quarantined' FROM trigger t
    WHERE t.error <> '' AND NOT EXISTS (SELECT 1 FROM quarantine k WHERE k.subject = 'trigger' AND k.key = t.id)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_vanished
-- Only what has ended is pruned, and what a run needs to be run again stays with it.
SELECT q.*, count(*) OVER () FROM (
    SELECT t.run_id, 'is gone, and its log ends with ' || t.to_state AS what FROM transition t
    LEFT JOIN run r ON r.id = t.run_id
    WHERE r.id IS NULL AND t.to_state NOT IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped')
      AND NOT EXISTS (SELECT 1 FROM transition l WHERE l.run_id = t.run_id AND l.seq > t.seq)
    UNION ALL
    SELECT r.id, 'lacks the payload it was admitted with' FROM run r
    LEFT JOIN firing_payload p ON p.firing_id = r.firing_id WHERE r.has_payload = 1 AND p.firing_id IS NULL
) AS q ORDER BY 1 LIMIT 10;

-- Walks ----------------------------------------------------------------------------------------------------------------------

-- name: audit_automations
-- A page: `(id, version in force)`.
SELECT id, version FROM automation WHERE id > :after ORDER BY id LIMIT :room;

-- name: audit_policies
-- Of a page: one policy of each automation; the ceilings are the definition's, so all of its triggers say the same.
SELECT t.automation_id, max(t.policy) FROM @rows(automation_id text) AS r
JOIN trigger t ON t.automation_id = r.automation_id WHERE t.kind = 'call' AND t.removed_at IS NULL
GROUP BY t.automation_id;

-- name: audit_definitions
SELECT v.automation_id, v.version, v.definition FROM @rows(automation_id text, version int) AS r
JOIN automation_version v ON v.automation_id = r.automation_id AND v.version = r.version;

-- name: audit_clock_count
SELECT count(*) FROM trigger WHERE schedule IS NOT NULL;

-- name: audit_clock_triggers
-- A page of the triggers that have, or had, a schedule.
SELECT t.id, t.automation_id, t.enabled, t.removed_at, t.error, t.next_fire_at, t.tzdata, t.version, t.firings, a.state,
       a.state_at
FROM trigger t JOIN automation a ON a.id = t.automation_id
WHERE t.schedule IS NOT NULL AND t.id > :after ORDER BY t.id LIMIT :room;

-- name: audit_clock_versions
SELECT v.trigger_id, v.version, v.schedule, v.tzdata, v.valid_from, v.valid_to
FROM @rows(trigger_id text) AS r JOIN trigger_version v ON v.trigger_id = r.trigger_id
ORDER BY v.trigger_id, v.version;

-- name: audit_clock_pauses
SELECT p.automation_id, min(p.paused_from) FROM @rows(automation_id text) AS r
JOIN pause p ON p.automation_id = r.automation_id WHERE p.paused_to IS NULL GROUP BY p.automation_id;

-- name: audit_clock_lines
-- The answers to slots within a span, and the ranges that reach into it.
SELECT f.trigger_id, f.id, f.version, f.verdict, coalesce(f.scheduled_for, f.slot_from), coalesce(f.scheduled_for, f.slot_to),
       f.slots, f.slots_exact, f.reason
FROM @rows(trigger_id text) AS r
JOIN firing f ON f.trigger_id = r.trigger_id
WHERE f.dedupe_key IS NOT NULL AND f.source = 'clock' AND f.verdict <> 'repeated'
  AND coalesce(f.scheduled_for, f.slot_to) > :since AND coalesce(f.scheduled_for, f.slot_from) <= :until;

-- I. Failures -------------------------------------------------------------------------------------------------------------

-- name: audit_errors_in_a_row
-- The dead letters since the last success, and since it was last enabled, but for those by hand; a second of doubt each
-- way. One whose end could not be written whole is named in the quarantine, and is not counted; and nobody can tell
-- where the wall showed the same time twice.
SELECT q.*, count(*) OVER () FROM (
    SELECT w.id, w.errors_in_a_row, w.at_least, w.at_most FROM (
        SELECT s.id, s.errors_in_a_row, s.since,
               (SELECT count(*) FROM run r WHERE r.automation_id = s.id AND r.dead_at > s.since + :skew
                AND r.source <> 'manual' AND NOT EXISTS (SELECT 1 FROM quarantine k WHERE k.subject = 'run' AND k.key = r.id)
               ) AS at_least,
               (SELECT count(*) FROM run r WHERE r.automation_id = s.id AND r.dead_at >= s.since - :skew
                AND r.source <> 'manual') AS at_most
        FROM (SELECT a.id, a.errors_in_a_row,
                     CASE WHEN coalesce(e.at, 0) > coalesce(a.last_success_at, 0) THEN e.at
                          ELSE coalesce(a.last_success_at, 0) END AS since
              FROM automation a
              LEFT JOIN (SELECT automation_id, max(at) AS at FROM definition_change WHERE verb = 'enable'
                         GROUP BY automation_id) AS e ON e.automation_id = a.id
              WHERE a.state <> 'removed') AS s
    ) AS w
    WHERE (w.errors_in_a_row < w.at_least
           OR (w.errors_in_a_row > w.at_most AND (:pruned_before = 0 OR w.since >= :pruned_before)))
      AND NOT EXISTS (SELECT 1 FROM gap b WHERE b.kind = 'step_back'
                      AND w.since BETWEEN b.gap_from - :skew AND b.gap_to)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_incidents
-- A standing incident is about something that failed, and is shaped like one that stands.
SELECT q.*, count(*) OVER () FROM (
    SELECT i.id, i.subject, 'its run is not there, or did not fail' AS what FROM incident i
    LEFT JOIN run r ON r.id = i.subject AND r.automation_id = i.automation_id AND r.dead_at IS NOT NULL
    WHERE i.state <> 'resolved' AND i.kind = 'execution' AND r.id IS NULL AND i.last_at >= :pruned_before
    UNION ALL
    SELECT i.id, i.subject, 'its delivery is not there' FROM incident i LEFT JOIN delivery d ON d.id = i.subject
    WHERE i.state <> 'resolved' AND i.kind = 'delivery' AND d.id IS NULL AND i.last_at >= :pruned_before
    UNION ALL
    SELECT i.id, i.subject, 'its trigger is not there' FROM incident i LEFT JOIN trigger t ON t.id = i.subject
    WHERE i.state <> 'resolved' AND i.kind = 'schedule' AND t.id IS NULL
    UNION ALL
    SELECT i.id, i.subject, 'its automation does not know that it may be failing' FROM incident i
    JOIN automation a ON a.id = i.automation_id
    WHERE i.state <> 'resolved' AND i.kind = 'execution' AND a.failing = 0
    UNION ALL
    SELECT i.id, i.subject, 'it is ' || i.state || ', counted ' || i.count FROM incident i
    WHERE i.count < 1 OR i.first_at > i.last_at + :skew
       OR (i.state = 'resolved' AND i.resolved_at IS NULL) OR (i.state <> 'resolved' AND i.resolved_at IS NOT NULL)
) AS q ORDER BY 1 LIMIT 10;

-- name: audit_alerted_twice
SELECT q.*, count(*) OVER () FROM (
    SELECT w.run_id, w.destination, w.id, w.created_at - w.created_before AS apart, w.cooldown FROM (
        SELECT d.id, d.run_id, d.destination, d.created_at, l.cooldown,
               lag(d.created_at) OVER (PARTITION BY d.run_id, d.destination ORDER BY d.created_at, d.id) AS created_before
        FROM delivery d JOIN alert l ON l.delivery_id = d.id WHERE d.alert IN ('opened', 'continued')
    ) AS w WHERE w.created_at - w.created_before < w.cooldown
) AS q ORDER BY 1, 3 LIMIT 10;

-- name: audit_paused_untold
SELECT q.*, count(*) OVER () FROM (
    SELECT a.id, a.state_at FROM automation a
    WHERE a.state = 'auto_paused' AND a.state_at >= :pruned_before
      AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.automation_id = a.id AND i.kind = 'auto_paused'
                      AND i.created_at >= a.state_at - :lag)
) AS q ORDER BY 1 LIMIT 10;
