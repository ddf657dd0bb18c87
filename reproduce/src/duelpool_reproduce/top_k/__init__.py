"""Assessing top-k preferences (TOIS 2021): thinning, effort, assessors, compatibility on TREC CAsT 2019."""
