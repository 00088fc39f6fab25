"""Whole rounds on the misbehaving web: laws, reruns, undo, kills."""
