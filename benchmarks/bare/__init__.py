"""Bare loops in C, with nothing around them: what this machine can do."""
