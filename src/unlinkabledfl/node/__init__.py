"""One participant, sans-IO: what it needs from a learner and a link, and how rounds turn."""
