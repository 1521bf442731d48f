"""Real servers on this machine for tests and the demo: HDFS and Hive metastores of source and target, and Hive's own driver.

Belongs here: downloading pinned jars, finding Java, starting and stopping processes, running SQL on Hive 3.1.3 and 4.2.0
(``hive``), a policy for these servers (``policy``), and ``hive-repl embedded`` (``cli``).

Keep out of here: anything that replication between real clusters needs. Only tests, benchmarks and the demo import this package.
"""
