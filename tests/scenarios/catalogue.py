"""The numbers of the scenarios, and why some have no test."""

from __future__ import annotations

#: Scenarios of bootstrap, incremental replication, dump directories, load resume, change management and the event log.
LISTED = frozenset(
    {1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35}
    | {37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79}
    | {80, 82, 83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109, 110, 112, 113, 115}
    | {116, 118, 119, 121, 122, 124, 125, 127, 128, 130, 131, 133, 134, 136, 137, 139, 140, 142, 143, 145, 146, 148}
)

#: Scenarios that are not applicable, each with what only Hive has (Hive's method in parentheses).
NOT_APPLICABLE = {
    13: "names of the MapReduce jobs of Hive's copies (testDatabaseInJobName); files are copied by threads or Spark tasks here",
    115: "retries inside Hive's lists of files, hive.repl.copy.file.list.iterator.retry (testReplWithRetryDisabledIterators)",
    133: "the metastore's thread that empties cmroot, hive.repl.cm.retain (TestReplChangeManager.testClearer)",
    134: "the metastore acting as a file's owner when it moves it to cmroot (TestReplChangeManager, recycle with impersonation)",
    139: "how long events are kept, hive.repl.event.db.listener.timetolive (testReplConfiguredCleanupOfNotificationEvents)",
    140: "the wait of the metastore's event cleaner after its start (testCleanerThreadStartupWait)",
    148: "extended attributes kept by distcp -px (testXAttrsPreserved); files are not copied by distcp here",
}

#: Scenarios of transactional tables, which this version does not replicate.
TRANSACTIONAL = {
    100: "ORC tables with transactions (testCheckPointingDataDumpFailureORCTableDistcpCopy)",
    146: "transactions that time out (TestTimedOutTxnNotificationLogging)",
}
