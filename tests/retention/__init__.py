"""Retention at size: days pass, what has passed its time goes, and what stays is counted."""
