-- Dispatch: a queued run is claimed, handed to a runner, and ends.

-- name: run_stage
-- Runs whose time has come may be claimed. One that somebody else holds is left for the next round: it rides with
-- claims, and a claim waits for nobody.
UPDATE run SET blocked = NULL
WHERE id IN (SELECT due.id FROM run AS due WHERE due.blocked = 'time' AND due.state = 'queued' AND due.run_after <= :now
             @lock_free(due));

-- name: claim_facts
-- Whether the desk is stopped, this worker was declared dead (maybe so long ago that nothing is known of it any more),
-- and the time of a retry or a held run has come.
SELECT EXISTS (SELECT 1 FROM setting WHERE key = 'stopped'),
       NOT EXISTS (SELECT 1 FROM worker WHERE id = :worker AND ended_at IS NULL),
       EXISTS (SELECT 1 FROM run WHERE blocked = 'time' AND run_after <= :now);

-- name: run_timed_next
SELECT min(run_after) FROM run WHERE blocked = 'time';

-- name: work_waiting
-- Whether anything could be claimed here or delivered just now.
SELECT EXISTS (SELECT 1 FROM run WHERE state = 'queued' AND blocked IS NULL
               AND (replace(:kinds, '|' || runner || '|', '') <> :kinds
                    AND replace(:beside, '|' || automation_id || '/' || version || '|', '') = :beside
                    OR replace(:among, '|' || automation_id || '/' || version || '|', '') <> :among))
    OR EXISTS (SELECT 1 FROM run WHERE blocked = 'time' AND run_after <= :now)
    OR EXISTS (SELECT 1 FROM delivery WHERE state = 'pending' AND next_try_at <= :now);

-- name: run_held_due
SELECT id, token, seq, attempt FROM run WHERE blocked = 'time' AND state = 'held' AND run_after <= :now
ORDER BY run_after @lock_free(run);

-- name: run_resume  held -> queued
UPDATE run SET state = 'queued', blocked = NULL, seq = run.seq + 1
FROM @rows(id text) AS r WHERE run.id = r.id AND run.state = 'held'
RETURNING run.id, run.seq, run.token, run.attempt;

-- name: run_workspaces
-- Those that have claimable runs, by seeks from one to the next: no queue is walked through to find what is behind it.
WITH RECURSIVE found (workspace) AS (
    SELECT min(workspace) FROM run WHERE state = 'queued' AND blocked IS NULL
    UNION ALL
    SELECT (SELECT min(run.workspace) FROM run
            WHERE run.state = 'queued' AND run.blocked IS NULL AND run.workspace > found.workspace)
    FROM found WHERE found.workspace IS NOT NULL
)
SELECT workspace FROM found WHERE workspace IS NOT NULL;

-- name: run_queued_by_kind
SELECT runner, count(*), min(queued_at) FROM run WHERE state = 'queued' AND blocked IS NULL GROUP BY runner ORDER BY runner;

-- part: candidate
-- Everything a claim needs; `tx_dispatch.Candidate`.
SELECT run.id, run.automation_id, run.source, a.concurrent, a.cooldown, a.state, run.workspace, run.trigger_id,
       run.firing_id, run.version, run.runner, run.attempt, run.attempts, run.token, run.seq, run.scheduled_for,
       run.has_payload, CASE WHEN run.attempt_at IS NULL THEN run.queued_at ELSE coalesce(
           (SELECT t.at FROM transition t WHERE t.run_id = run.id AND t.seq = run.seq), run.attempt_at) END,
       run.merged, run.carries,
       CASE WHEN run.attempt_at IS NULL THEN run.stale_at END
FROM run JOIN automation a ON a.id = run.automation_id

-- name: run_candidates
-- The rows are locked: what is claimed of them cannot be lost to another. What this process cannot execute is passed
-- over. That nobody stopped the desk is asked once more, see `claim_facts`.
@part(candidate)
WHERE run.workspace = :workspace AND run.state = 'queued' AND run.blocked IS NULL
  AND (replace(:kinds, '|' || run.runner || '|', '') <> :kinds
       AND replace(:beside, '|' || run.automation_id || '/' || run.version || '|', '') = :beside
       OR replace(:among, '|' || run.automation_id || '/' || run.version || '|', '') <> :among)
  AND NOT EXISTS (SELECT 1 FROM setting WHERE key = 'stopped')
ORDER BY run.rank LIMIT :room @lock_free(run);

-- name: run_candidate
-- One named run, for a command that executes it in its own process.
@part(candidate)
WHERE run.id = :id AND run.state = 'queued' AND run.blocked IS NULL
  AND NOT EXISTS (SELECT 1 FROM setting WHERE key = 'stopped') @lock_free(run);

-- name: automation_try_lock
-- Automations whose runs are counted before a claim. A locked one is left for the next round, so a claim waits for nobody.
SELECT a.id, a.state FROM @rows(id text) AS r JOIN automation a ON a.id = r.id ORDER BY a.id @lock_free(a);

-- name: automation_lock
SELECT a.id FROM @rows(id text) AS r JOIN automation a ON a.id = r.id ORDER BY a.id @lock(a);

-- name: automation_running
-- The list of states repeats the condition of the index, which the planner does not see through otherwise.
SELECT r.id, (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state = 'running'
              AND run.state IN ('queued', 'running', 'held', 'lost'))
FROM @rows(id text) AS r;

-- name: run_block
-- Out of the claim's way until the run it waits for ends, or its automation is enabled.
UPDATE run SET blocked = r.blocked
FROM @rows(id text, blocked text) AS r
WHERE run.id = r.id AND run.state = 'queued' AND run.blocked IS NULL;

-- name: run_claim  queued -> running
UPDATE run SET state = 'running', worker = :worker, token = run.token + 1, attempt = run.attempt + 1,
       seq = run.seq + 1, started_at = coalesce(run.started_at, :now), attempt_at = :now,
       ran_late = CASE WHEN run.started_at IS NULL AND (run.catchup = 1 OR :now - run.scheduled_for > 300000000) THEN 1
                       ELSE run.ran_late END
FROM @rows(id text) AS r
WHERE run.id = r.id AND run.state = 'queued' AND run.blocked IS NULL;

-- name: run_begin
-- A run that is claimed as it is admitted: the row that queueing and claiming would leave, at once. Both its
-- transitions are written beside it, by `transition_queue` and `transition_begin`.
INSERT INTO run (id, workspace, automation_id, trigger_id, firing_id, source, version, runner, state, blocked,
                 rank, run_after, priority, attempts, scheduled_for, queued_at, root, depth, replay_of, has_payload,
                 catchup, stale_at, worker, token, attempt, seq, started_at, attempt_at, ran_late)
SELECT r.id, r.workspace, r.automation_id, r.trigger_id, r.firing_id, r.source, r.version, r.runner, 'running',
       r.blocked, r.rank, r.run_after, r.priority, r.attempts, r.scheduled_for, :now, r.root, r.depth, r.replay_of,
       r.has_payload, r.catchup, r.stale_at, :worker, 1, 1, 2, :now, :now,
       CASE WHEN r.catchup = 1 OR :now - r.scheduled_for > 300000000 THEN 1 ELSE 0 END
FROM @rows(id text, workspace text, automation_id text, trigger_id text, firing_id text, source text, version int,
           runner text, blocked text, rank int, priority int, attempts int, scheduled_for int, root text, depth int,
           replay_of text, has_payload int, run_after int, catchup int, stale_at int) AS r;

-- name: transition_begin
INSERT INTO transition (run_id, seq, from_state, to_state, at, worker, token, attempt)
SELECT r.run_id, 2, 'queued', 'running', :now, :worker, 1, 1
FROM @rows(run_id text) AS r;

-- name: run_waits
-- Whether a run waits that this process could claim: one that is just coming does not pass it. The order is that of the
-- index, so that no planner walks through the table for it.
SELECT (SELECT 1 FROM run WHERE state = 'queued' AND blocked IS NULL
        AND (replace(:kinds, '|' || runner || '|', '') <> :kinds
             AND replace(:beside, '|' || automation_id || '/' || version || '|', '') = :beside
             OR replace(:among, '|' || automation_id || '/' || version || '|', '') <> :among)
        ORDER BY workspace, rank LIMIT 1) IS NOT NULL;

-- name: run_versions_waiting
-- The definitions whose runs could be claimed, best rank first.
SELECT automation_id, version, runner FROM run WHERE state = 'queued' AND blocked IS NULL
  AND replace(:kinds, '|' || runner || '|', '') <> :kinds
GROUP BY automation_id, version, runner ORDER BY min(rank), automation_id, version;

-- name: automation_started
UPDATE automation SET last_started_at = :now FROM @rows(id text) AS r WHERE automation.id = r.id;

-- name: firing_payload
SELECT p.firing_id, p.text, p.payload FROM @rows(firing_id text) AS r
JOIN firing_payload p ON p.firing_id = r.firing_id;

-- name: run_words
-- What the firings of each run said, in their order: its own, and those that were folded into it.
SELECT r.run_id, p.text, p.payload FROM @rows(run_id text) AS r
JOIN run ON run.id = r.run_id
JOIN firing f ON f.automation_id = run.automation_id AND f.arrived_at >= run.queued_at - 3600000000
              AND f.run_id = run.id AND f.verdict IN ('admitted', 'merged')
JOIN firing_payload p ON p.firing_id = f.id
ORDER BY r.run_id, f.arrived_at, f.id;

-- name: definitions_of
SELECT v.automation_id, v.version, a.name, v.definition FROM @rows(automation_id text, version int) AS r
JOIN automation_version v ON v.automation_id = r.automation_id AND v.version = r.version
JOIN automation a ON a.id = r.automation_id;

-- name: run_fences
-- Locks the runs whose claim is still the current one; a worker that was presumed dead finds nothing here.
SELECT run.id, run.token, run.seq, run.cancel_reason, run.worker, run.attempt_at FROM @rows(id text, token int) AS r
JOIN run ON run.id = r.id
WHERE run.state = 'running' AND run.token = r.token ORDER BY run.id @lock(run);

-- name: run_latest
-- The latest instants that are written down of runs: of their steps and of their effects.
SELECT r.id, (SELECT max(t.at) FROM transition t WHERE t.run_id = r.id),
       (SELECT max(e.intended_at) FROM effect e WHERE e.run_id = r.id),
       (SELECT max(e.done_at) FROM effect e WHERE e.run_id = r.id)
FROM @rows(id text) AS r;

-- name: run_end  running -> succeeded | failed | timed_out | cancelled | skipped
-- Fenced: a worker that was presumed dead changes nothing. The ending is the run's last change.
UPDATE run SET state = r.state, reason = r.reason, ended_at = :now, seq = run.seq + 1,
       outcome = r.outcome, error_class = r.error_class, error = r.error, exit_code = r.exit_code, dead_at = r.dead_at
FROM @rows(id text, token int, state text, reason text, outcome text, error_class text, error text, exit_code int,
           dead_at int) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token;

-- name: run_retry  running -> queued
UPDATE run SET state = 'queued', blocked = 'time', run_after = r.run_after,
       rank = r.run_after + run.priority * 10000000, reason = r.reason, seq = run.seq + 1,
       error_class = r.error_class, error = r.error, exit_code = r.exit_code
FROM @rows(id text, token int, run_after int, reason text, error_class text, error text, exit_code int) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token;

-- name: run_hold  running -> held
-- The provider asked us to come back: no failure, and the attempt is given back.
UPDATE run SET state = 'held', blocked = 'time', run_after = r.run_after, attempt = run.attempt - 1,
       rank = r.run_after + run.priority * 10000000, reason = r.reason, seq = run.seq + 1, error = r.error
FROM @rows(id text, token int, run_after int, reason text, error text) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token;

-- name: run_release  running -> queued
-- A shutdown, or nothing of it could be started: the attempt is given back.
UPDATE run SET state = 'queued', attempt = run.attempt - 1, seq = run.seq + 1, reason = r.reason, error = r.error,
       run_after = r.run_after, blocked = CASE WHEN r.run_after > :now THEN 'time' END
FROM @rows(id text, token int, run_after int, reason text, error text) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token;

-- name: run_set_aside  running -> review
UPDATE run SET state = 'review', seq = run.seq + 1, reason = r.reason, error = r.error
FROM @rows(id text, token int, reason text, error text) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.token = r.token;

-- name: run_cancel  queued | held -> cancelled
UPDATE run SET state = 'cancelled', blocked = NULL, ended_at = :now, seq = run.seq + 1, reason = r.reason,
       cancel_by = r.by, cancel_reason = r.reason, cancel_at = :now
FROM @rows(id text, reason text, by text) AS r
WHERE run.id = r.id AND run.state IN ('queued', 'held')
RETURNING run.id, run.seq, run.automation_id, run.token, run.attempt;

-- name: run_lapse  queued -> skipped
-- It waited until it was too old to be begun.
UPDATE run SET state = 'skipped', blocked = NULL, ended_at = :now, seq = run.seq + 1, reason = :reason
FROM @rows(id text) AS r WHERE run.id = r.id AND run.state = 'queued'
RETURNING run.id, run.seq, run.token, run.attempt;

-- name: run_waiting
SELECT run.id, run.state, run.automation_id, run.version, run.workspace, a.name FROM @rows(id text) AS r
JOIN run ON run.id = r.id JOIN automation a ON a.id = run.automation_id
WHERE run.state IN ('queued', 'held') ORDER BY run.id @lock(run);

-- name: run_cancel_ask
-- A running run is asked to end; its worker sees it and ends the work itself.
UPDATE run SET cancel_at = :now, cancel_by = r.by, cancel_reason = r.reason
FROM @rows(id text, reason text, by text) AS r
WHERE run.id = r.id AND run.state = 'running' AND run.cancel_at IS NULL
RETURNING run.id;

-- name: run_cancel_asked
-- The list of states repeats the condition of the index; see there why it is found by the state.
SELECT id, token, cancel_reason, cancel_by FROM run WHERE state IN ('queued', 'running', 'held', 'lost')
  AND state = 'running' AND worker = :worker AND cancel_at IS NOT NULL;

-- name: run_behind
-- The runs that wait for another run of these automations. Those that go one after another go in the order of their
-- slots, however late each was put off to begin, where those behind a ceiling go by rank.
SELECT run.automation_id, run.id, run.blocked, a.concurrent, run.source, a.state
FROM @rows(automation_id text) AS r
JOIN run ON run.automation_id = r.automation_id
JOIN automation a ON a.id = r.automation_id
WHERE run.blocked IN ('overlap', 'concurrency') AND run.state = 'queued'
ORDER BY run.automation_id,
         CASE WHEN run.blocked = 'overlap' THEN coalesce(run.scheduled_for, run.queued_at) ELSE run.rank END, run.rank;

-- name: automation_going
-- How many of an automation's runs are running, and how many stand in the way of a run that must go alone.
SELECT r.id, (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state = 'running'
              AND run.state IN ('queued', 'running', 'held', 'lost')),
       (SELECT count(*) FROM run WHERE run.automation_id = r.id AND run.state IN ('queued', 'running', 'held', 'lost')
        AND (run.blocked IS NULL OR run.blocked <> 'overlap'))
FROM @rows(id text) AS r;

-- name: run_unblock
-- One that waits for others like it, or for its turn among late ones, goes on waiting for that.
UPDATE run SET blocked = CASE WHEN run.token = 0 AND (run.merge_key IS NOT NULL OR run.catchup = 1 AND run.run_after > :now)
                         THEN 'time' END
FROM @rows(id text) AS r WHERE run.id = r.id AND run.state = 'queued' AND run.blocked IN ('overlap', 'concurrency');

-- name: run_output_write
INSERT INTO run_output (run_id, text, data, log)
SELECT r.run_id, r.text, r.data, r.log FROM @rows(run_id text, text text, data text, log text) AS r WHERE true
ON CONFLICT (run_id) DO UPDATE SET text = excluded.text, data = excluded.data, log = excluded.log;

-- name: automation_health
UPDATE automation SET last_run_id = r.run_id, last_outcome = r.outcome,
       last_success_at = coalesce(r.success_at, automation.last_success_at),
       last_failure_at = coalesce(r.failure_at, automation.last_failure_at),
       errors_in_a_row = CASE WHEN r.reset = 1 THEN r.errors ELSE automation.errors_in_a_row + r.errors END,
       failing = CASE WHEN r.failed = 1 THEN 1 ELSE automation.failing END
FROM @rows(id text, run_id text, outcome text, success_at int, failure_at int, reset int, errors int,
           failed int) AS r
WHERE automation.id = r.id
RETURNING automation.id, automation.errors_in_a_row, automation.failing, automation.state;

-- name: automation_complete  active -> completed
-- A one-shot has its outcome.
UPDATE automation SET state = 'completed', state_reason = :reason, state_by = 'desk',
       state_at = :now
FROM @rows(id text) AS r
WHERE automation.id = r.id AND automation.state = 'active'
  AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.automation_id = automation.id AND t.next_fire_at IS NOT NULL);

-- name: rollup_add
INSERT INTO rollup_month (automation_id, month, runs, succeeded, quiet, failed, cancelled)
SELECT r.automation_id, r.month, r.runs, r.succeeded, r.quiet, r.failed, r.cancelled
FROM @rows(automation_id text, month text, runs int, succeeded int, quiet int, failed int, cancelled int) AS r
WHERE true
ON CONFLICT (automation_id, month) DO UPDATE SET
    runs = rollup_month.runs + excluded.runs, succeeded = rollup_month.succeeded + excluded.succeeded,
    quiet = rollup_month.quiet + excluded.quiet, failed = rollup_month.failed + excluded.failed,
    cancelled = rollup_month.cancelled + excluded.cancelled;

-- name: run_fence
-- Locks the run and answers whether the claim is still the current one.
SELECT run.attempt, run.attempt_at FROM run WHERE run.id = :id AND run.token = :token AND run.state = 'running' @lock(run);

-- name: child_write
-- Asked again where the answer to the first commit was lost. The child of a look has ended when that of the work comes.
INSERT INTO child (run_id, token, worker, host, process_group, started, look)
VALUES (:run_id, :token, :worker, :host, :process_group, :started, :look)
ON CONFLICT (run_id, token) DO UPDATE SET process_group = excluded.process_group, started = excluded.started,
    look = excluded.look WHERE child.look = 1;

-- name: child_forget
DELETE FROM child WHERE (run_id, token) IN (SELECT r.run_id, r.token FROM @rows(run_id text, token int) AS r);

-- name: effect_find
SELECT state, permalink, attempt, token FROM effect WHERE run_id = :run_id AND key = :key;

-- name: effect_intend
INSERT INTO effect (run_id, key, name, state, attempt, token, intended_at)
SELECT r.run_id, r.key, r.name, 'intended', r.attempt, r.token, :now
FROM @rows(run_id text, key text, name text, attempt int, token int) AS r WHERE true
ON CONFLICT (run_id, key) DO UPDATE SET attempt = excluded.attempt, token = excluded.token,
    intended_at = excluded.intended_at WHERE effect.state = 'intended';

-- name: effect_do
UPDATE effect SET state = 'done', permalink = :permalink,
       done_at = CASE WHEN effect.intended_at > :now THEN effect.intended_at ELSE :now END
WHERE run_id = :run_id AND key = :key AND state = 'intended';

-- name: effect_started_done
-- The attempt ended: its start is no open question any more.
UPDATE effect SET state = 'done', done_at = CASE WHEN effect.intended_at > :now THEN effect.intended_at ELSE :now END
FROM @rows(run_id text, key text) AS r WHERE effect.run_id = r.run_id AND effect.key = r.key AND effect.state = 'intended';

-- name: effect_counts
-- How many effects of a run are done, and how many are open questions; the attempt's own start is not an effect. Its key
-- tells it: a person's effect may be called `started` too.
SELECT r.run_id,
       (SELECT count(*) FROM effect e WHERE e.run_id = r.run_id AND e.state = 'done'
        AND NOT (e.name = 'started' AND e.key = 'started:' || e.token)),
       (SELECT count(*) FROM effect e WHERE e.run_id = r.run_id AND e.state = 'intended'
        AND NOT (e.name = 'started' AND e.key = 'started:' || e.token)),
       (SELECT count(*) FROM effect e WHERE e.run_id = r.run_id AND e.state = 'intended'
        AND e.name = 'started' AND e.key = 'started:' || e.token)
FROM @rows(run_id text) AS r;

-- name: effect_forget_intents
DELETE FROM effect WHERE run_id = :run_id AND state = 'intended';

-- name: quarantine_forget_runs
DELETE FROM quarantine WHERE subject = 'run' AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = quarantine.key);

-- name: run_states
SELECT run.id, run.state, run.workspace, a.name FROM @rows(id text) AS r
JOIN run ON run.id = r.id JOIN automation a ON a.id = run.automation_id;

-- name: run_origin
SELECT automation_id, coalesce(carries, firing_id), merged > 0 AND carries IS NULL FROM run WHERE id = :id;

-- name: run_automations
SELECT DISTINCT run.automation_id FROM @rows(id text) AS r JOIN run ON run.id = r.id;

-- name: run_all_running
SELECT id FROM run WHERE state IN ('queued', 'running', 'held', 'lost') AND state = 'running' AND cancel_at IS NULL
ORDER BY id;
