"""The pure part of the step `seed`: seed files and the decisions of people."""
