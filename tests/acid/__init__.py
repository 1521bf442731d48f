"""Transactional tables: transactions by real Hive 4.2.0, replicated window by window, and read by it on both sides."""
