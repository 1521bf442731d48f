"""Real servers on this machine: HDFS and Hive metastores for source and target, and Hive's own driver. For demo and tests.

Belongs here: fetching pinned jars, finding Java, starting and stopping server processes, running SQL on real Hive. Does not
belong here: anything a replication against real clusters needs; nothing outside tests and demo imports this package.

``Cluster`` (cluster.py) starts and stops, ``Side`` says where the servers are, ``HiveDriver`` (hive.py) runs statements on
Hive 3.1.3 or 4.2.0, ``write_policy`` (policy.py) makes a policy for them. ``hive-repl embedded`` is the command line (cli.py).
"""
