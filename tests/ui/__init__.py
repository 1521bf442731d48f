"""The pages that operators work in, driven in a real browser.

Belongs here: ``dagster dev`` in Chromium, what a page shows and what its buttons do. Does not belong here: what a run does
(``integration``).
"""
