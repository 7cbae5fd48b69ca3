-- Looks: what those of runs saw, and what is kept of them from run to run.

-- name: look_facts
-- What is kept of a look, and whether a person wanted this run whatever it says.
SELECT (SELECT s.state FROM look_state s WHERE s.automation_id = :automation_id AND s.look = :look),
       (SELECT s.version FROM look_state s WHERE s.automation_id = :automation_id AND s.look = :look),
       (SELECT l.answer FROM run_look l WHERE l.run_id = :run_id);

-- name: look_saw
-- Of the latest attempt that was asked.
INSERT INTO run_look (run_id, kind, answer, text)
SELECT r.run_id, r.kind, r.answer, r.text FROM @rows(run_id text, kind text, answer text, text text) AS r WHERE true
ON CONFLICT (run_id) DO UPDATE SET kind = excluded.kind, answer = excluded.answer, text = excluded.text;

-- name: look_keep
-- A run that saw an older state than what is kept by now changes nothing, nor does one whose state was forgotten.
INSERT INTO look_state (automation_id, look, state, version, run_id, at)
SELECT r.automation_id, r.look, r.state, r.version + 1, r.run_id, :now
FROM @rows(automation_id text, look text, state text, version int, run_id text) AS r
WHERE r.version = 0 OR EXISTS (SELECT 1 FROM look_state s WHERE s.automation_id = r.automation_id AND s.look = r.look)
ON CONFLICT (automation_id, look) DO UPDATE SET state = excluded.state, version = excluded.version,
    run_id = excluded.run_id, at = excluded.at WHERE look_state.version + 1 = excluded.version;

-- name: looks_kept
SELECT look FROM look_state WHERE automation_id = :automation_id ORDER BY look;

-- name: look_forget
DELETE FROM look_state WHERE (automation_id, look) IN (
    SELECT r.automation_id, r.look FROM @rows(automation_id text, look text) AS r);

-- name: read_look
SELECT kind, answer, text FROM run_look WHERE run_id = :run_id;
