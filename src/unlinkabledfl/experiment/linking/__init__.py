"""The board of adversaries: deployments recorded in virtual time, and what each adversary makes of them."""
