"""The pure part of the step `dedupe`: representatives of contents and the Bloom filters of buckets."""
