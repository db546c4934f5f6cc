"""Which host gets which segment.  Never sees a payload."""
