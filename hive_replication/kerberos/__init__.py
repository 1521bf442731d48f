"""Kerberos: tickets of the account that a side is read or written by, and what is proven with them.

Belongs here: credentials from a keytab or a ticket cache, names of services, contexts, and what their errors mean.

Keep out of here: what metastore and HDFS send over the wire: ``metastore/sasl.py``, ``storage/``.
"""
