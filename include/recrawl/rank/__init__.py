"""The pure part of the step `rank`: AOPIC, change rates, due times and state transitions."""
