"""Copying one file and proving the replica (design: which file is decided by the recorded checksum; size and time are never proof).

Belongs here: ``copy_file``, the tasks and results, packing tasks, copying with the driver's threads.
Does not belong here: which files to copy (``load``), Spark (``resources.spark_copier``).
"""
