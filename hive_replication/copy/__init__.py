"""Copying one file and proving the replica: the recorded checksum decides which file is right; size and time are never proof.

Belongs here: ``copy_file``, the tasks and results, packing tasks, copying with the driver's threads.
Does not belong here: which files to copy (``load``), Spark (``resources.spark_copier``).
"""
