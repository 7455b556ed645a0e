"""Constraint systems as a template, a prefix and copies of one body, and their witnesses as bits."""
