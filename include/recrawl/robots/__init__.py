"""robots.txt (RFC 9309): its rules for one agent, and what a failed fetch of it means."""
