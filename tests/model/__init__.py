"""A stateful property test of the whole ledger: random operations, faults, moves of time and restarts, against a plain
account of what each arrival should have become.

Read `wishes` (what is drawn), `account` and `standing` (what should have become of it), `trouble` (what goes wrong),
`desk`, `asking`, `labour`, `sending` and `aftermath` (the engine, step by step), `workday` and `machine` (the rules),
`books` (the comparison), then `seeded` (bugs that it must find) and `soak`.
"""
