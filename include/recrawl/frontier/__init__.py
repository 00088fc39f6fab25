"""The pure part of the step `frontier`: crawl value, front queues, quotas and the packing of hosts."""
