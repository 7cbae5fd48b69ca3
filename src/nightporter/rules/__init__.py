"""rules: decisions without I/O. Values and `now` go in, values come out; nothing here reads a clock or a store."""
