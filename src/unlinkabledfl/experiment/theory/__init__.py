"""The theorems' quantities of a design before it runs, and of a run afterwards."""
