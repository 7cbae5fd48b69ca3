"""Measurements of the desk, each beside the limit that the machine sets for it, taken in the same run.

`python -m benchmarks --help` says how to run them; docs/performance.md says what each row is.
"""
