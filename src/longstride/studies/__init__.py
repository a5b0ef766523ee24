"""Studies of our own, which no paper has; their form is that of `longstride.papers`."""
