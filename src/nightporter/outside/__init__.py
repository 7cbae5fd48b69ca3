"""The outside world, guarded: child processes, HTTP, secrets and files.

Nothing here knows of automations or runs. What comes in from outside is bounded (bytes, time), and what goes out
goes only where the person who runs the desk allowed it.
"""
