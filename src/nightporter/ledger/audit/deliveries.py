"""Deliveries: one for each destination of an ended run, tried by itself, and told as it was."""

from __future__ import annotations

from nightporter.clock import rfc3339
from nightporter.ledger.audit.check import asked

CHECKS = (
    asked("I-47", "a run has one delivery for a destination", "audit_delivered_twice",
          lambda r: f"{r[0]} has {r[2]} deliveries for {r[1]!r}"),
    asked("I-48", "each try of a delivery sends the same event id and the same body", "audit_events_differ",
          lambda r: f"{r[0]} was tried with {r[1]} bodies, and {r[2]} times under another event id"),
    asked("I-49", "a delivery is what its last try said, and what is delivered has evidence and is left alone",
          "audit_last_try",
          lambda r: f"{r[0]} is {r[1]}, its last try {r[2] or 'left no line'}, its evidence {r[3]!r}"),
    asked("N-13", "a delivery has no more lines than tries", "audit_tries_counted",
          lambda r: f"{r[0]} has {r[1]} tries, token {r[2]}, and {r[3]} lines, from {r[4]} to {r[5]}"),
    asked("I-50a", "a delivery has a next try exactly while it has no end", "audit_delivery_shape",
          lambda r: f"{r[0]} is {r[1]}, next try {rfc3339(r[2]) or 'never'}, ended {rfc3339(r[3]) or 'never'}"),
    asked("I-50b", "no delivery is an hour overdue while somebody is there to send it", "audit_delivery_stands",
          lambda r: f"{r[0]} to {r[1]} has been due since {rfc3339(r[2])}"),
    asked("N-14", "what an ended worker was sending is taken back within a minute", "audit_sending_under_the_dead",
          lambda r: f"{r[0]} is sent by {r[1]}, which " + (f"ended at {rfc3339(r[2])}" if r[2] else "nobody knows")),
    asked("I-52", "no run failed because its delivery did", "audit_delivery_blamed",
          lambda r: f"{r[0]} is {r[1]} because {r[2]}"),
)
