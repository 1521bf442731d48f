"""Write ids of transactional (ACID) tables, and which of their directories hold data of which write ids. All of it is pure.

Belongs here: Hive's rules of what a reader sees of a table's directory (``ValidReaderWriteIdList``, ``AcidUtils``). Does not
belong here: transactions of a metastore (``metastore``), their events (``events``), what is done about them (``dump``, ``load``).
"""
