"""Upgrades: stores that released programs left, brought forward by this one.

`releases/VERSION/` holds what a desk of that release left behind when it was killed in the middle of its work, as text;
`recording` is how it was made; `loading` puts it into either database again.
"""
