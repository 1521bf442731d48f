"""The numbers of the scenarios, where those are that are not tests by their number, and why some have none."""

from __future__ import annotations

#: Scenarios of bootstrap, incremental replication, dump directories, load resume, change management, the event log, and of
#: transactional tables.
LISTED = frozenset(
    {1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35}
    | {37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79}
    | {80, 82, 83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109, 110, 112, 113, 115}
    | {116, 118, 119, 121, 122, 124, 125, 127, 128, 130, 131, 133, 134, 136, 137, 139, 140, 142, 143, 145, 146, 148}
    | {149, 151, 152, 154, 155, 157, 158, 160, 161, 163, 164, 166, 167, 169, 170, 172, 173, 175, 176, 178, 179, 181, 182}
)

#: Scenarios that are not applicable, each with what only Hive has (Hive's method in parentheses).
NOT_APPLICABLE = {
    13: "names of the MapReduce jobs of Hive's copies (testDatabaseInJobName); files are copied by threads or Spark tasks here",
    100: "checkpoints of distcp copies of ORC tables with transactions (testCheckPointingDataDumpFailureORCTableDistcpCopy)",
    115: "retries inside Hive's lists of files, hive.repl.copy.file.list.iterator.retry (testReplWithRetryDisabledIterators)",
    133: "the metastore's thread that empties cmroot, hive.repl.cm.retain (TestReplChangeManager.testClearer)",
    134: "the metastore acting as a file's owner when it moves it to cmroot (TestReplChangeManager, recycle with impersonation)",
    139: "how long events are kept, hive.repl.event.db.listener.timetolive (testReplConfiguredCleanupOfNotificationEvents)",
    140: "the wait of the metastore's event cleaner after its start (testCleanerThreadStartupWait)",
    148: "extended attributes kept by distcp -px (testXAttrsPreserved); files are not copied by distcp here",
    166: "ORC tables copied by distcp on the target (testORCTableDistcpCopyWithCopyOnTarget)",
    175: "the setting hive.repl.clean.tables.from.bootstrap (retryIncBootstrapAcidFromDifferentDumpWithoutCleanTablesConfig)",
    182: "managed tables made external and back: Hive 4 refuses it in a database that is replicated (strict managed tables)",
}

#: Scenarios that are tested in other places: file and test.
ELSEWHERE = {
    146: "integration/test_transactions.py::test_a_transaction_over_windows",  # housekeeping aborts as anybody does
    149: "integration/test_acid.py::test_bootstrap_and_windows",
    151: "integration/test_transactions.py::test_a_bootstrap_aborts_what_stays_open_here_only",
    152: "integration/test_transactions.py::test_a_bootstrap_aborts_what_stays_open_here_only",
    154: "integration/test_transactions.py::test_a_bootstrap_aborts_what_stays_open_here_only",
    155: "integration/test_transactions.py::test_a_bootstrap_fails_where_transactions_stay_open",
    158: "integration/test_acid.py::test_bootstrap_and_windows",
    160: "integration/test_transactions.py::test_a_killed_load_is_gone_on_with",
    161: "integration/test_transactions.py::test_a_target_of_hive_3_refuses",
    164: "integration/test_acid.py::test_bootstrap_and_windows",  # every dump names files, and holds none
    178: "integration/test_transactions.py::test_files_that_compaction_removed_come_from_cmroot",
}
