"""The demo: a sales database of real files on the embedded servers, changed while Dagster's sensor replicates it.

Belongs here: making and changing the demo's source (``tables``, ``source``, ``filling``, ``changes``), Spark for its files and
for row hashes (``spark``), ``dagster dev`` (``dagster_dev``), what is shown of it all (``screen``, ``following``,
``comparison``), and the order of the acts (``play``). Does not belong here: replication, which the sensor does as everywhere.

``python -m resources.embedded.demo`` runs it (``make demo``).
"""
