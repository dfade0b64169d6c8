"""One factor at a time: each level of some settings on fresh servers under the same loads, then drafts of all of them together."""
