"""Copies files and proves each replica by checksum. Size and modification time are never proof.

Belongs here: the copy of one file, copy tasks and their results, packing of tasks, copying in threads, bandwidth.

Keep out of here: which files to copy (``load``), and Spark (``resources.spark_copier``).
"""
