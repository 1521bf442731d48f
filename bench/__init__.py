"""Measurements that are not part of the tests; their figures are in docs/performance.md."""
