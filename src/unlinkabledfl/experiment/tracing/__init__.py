"""Traces of runs: what nodes take down while one goes on, and the two files that it becomes afterwards."""
