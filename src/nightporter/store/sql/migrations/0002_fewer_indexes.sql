-- Every run passes through the indexes of those that are unfinished. One is enough: led by the state, it finds the
-- running ones of a worker, who are few, as well as those of an automation.

DROP INDEX run_of_worker;
DROP INDEX run_active;
CREATE INDEX run_active ON run (state, automation_id) WHERE state IN ('queued', 'running', 'held', 'lost');
