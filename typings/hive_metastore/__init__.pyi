from hive_metastore import ThriftHiveMetastore as ThriftHiveMetastore
from hive_metastore import ttypes as ttypes
