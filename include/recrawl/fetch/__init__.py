"""The pure part of the step `fetch`: politeness, robots, engines, captures, the journal."""
