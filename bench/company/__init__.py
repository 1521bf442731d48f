"""A simulated company: a metastore and an HDFS that answer from a formula, and what replicating slices of it costs.

Nothing of the source is stored: names, places, sizes, times, contents and checksums are computed from the numbers of table,
partition and file. So a warehouse of 10,000 tables with 10,000 partitions each stands on any machine, and the real dump and load
run against as much of it as is asked for. The servers speak what real ones do: Thrift, Hadoop's RPC, WebHDFS.
"""
