"""Rules of transactional (ACID) tables: write ids, and which directories and rows a reader sees.

Belongs here: pure functions that follow Hive's own rules (``ValidReaderWriteIdList``, ``AcidUtils``).

Keep out of here: calls of a metastore (``metastore``), transaction events (``events``), and what a dump or load does with them.
"""
