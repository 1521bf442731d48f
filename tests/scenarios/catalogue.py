"""The numbers of the scenarios, where those are that are not tests by their number, and why some have none."""

from __future__ import annotations

#: Scenarios of bootstrap, incremental replication, dump directories, load resume, change management, the event log,
#: transactional and external tables, snapshots, clusters, functions, policies, failover, metrics and schedules.
LISTED = frozenset(
    {1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35}
    | {37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79}
    | {80, 82, 83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109, 110, 112, 113, 115}
    | {116, 118, 119, 121, 122, 124, 125, 127, 128, 130, 131, 133, 134, 136, 137, 139, 140, 142, 143, 145, 146, 148}
    | {149, 151, 152, 154, 155, 157, 158, 160, 161, 163, 164, 166, 167, 169, 170, 172, 173, 175, 176, 178, 179, 181, 182}
    | {184, 185, 187, 188, 190, 191, 193, 194, 196, 197, 199, 200, 202, 203, 205, 206, 208, 209, 211, 212, 214, 215, 217, 218}
    | {220, 221, 223, 224, 226, 227, 229, 230, 232, 233, 235, 236, 238, 239, 241, 242, 244, 245, 247, 248, 250, 251, 253, 254}
    | {256, 257, 259}
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
    166: "ORC tables copied by distcp on the target (testORCTableDistcpCopyWithCopyOnTarget)",
    175: "the setting hive.repl.clean.tables.from.bootstrap (retryIncBootstrapAcidFromDifferentDumpWithoutCleanTablesConfig)",
    182: "managed tables made external and back: Hive 4 refuses it in a database that is replicated (strict managed tables)",
    191: "the setting hive.repl.bootstrap.external.tables; external tables are not left out by their kind here",
    199: "hive.repl.external.warehouse.single.copy.task: one distcp for many directories; files are copied one by one here",
    200: "a line in Hive's log after its last distcp",
    215: "the file _tables of Hive's dumps; the tables of a policy are in a dump's header here",
    220: "policies of Ranger, which has an export and import of its own",
    221: "metadata of Atlas, which has an export and import of its own",
    253: "the marker _non_recoverable and its state FAILED_ADMIN; nothing is blocked here, what is missing comes again",
}

#: Scenarios that are tested in other places: file and test.
ELSEWHERE = {
    146: "integration/test_transactions.py::test_a_transaction_over_windows",  # housekeeping aborts as anybody does
    148: "integration/test_preserve.py::test_extended_attributes_are_kept_where_the_policy_says_so",
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
    184: "integration/test_load.py::test_external_tables_and_paths_in_parameters",
    185: "integration/test_load.py::test_external_tables_and_paths_in_parameters",  # data is always copied at the load
    187: "integration/test_preserve.py::test_acls_are_kept_or_narrow_the_mode",
    188: "integration/test_partition_locations.py::test_they_keep_their_paths_below_the_external_root",
    190: "integration/test_drift.py::test_files_put_deleted_and_rewritten",
    193: "integration/test_load.py::test_a_newer_bootstrap_replaces_a_half_made_one",
    194: "unit/load/replica/test_name_mapping.py::test_external_data_keeps_its_path_below_the_external_root",
    196: "integration/test_load.py::test_bootstrap_is_consolidated_at_the_source",
    197: "integration/test_odd_neighbours.py::test_another_catalog",
    202: "integration/test_load.py::test_data_of_external_tables_outlives_their_database",
    203: "integration/test_locations.py::test_the_policy_chooses",
    205: "integration/test_drift_snapshots.py::test_without_the_setting_snapshots_are_removed",  # and made when it is set again
    206: "integration/test_drift_snapshots.py::test_partitions_elsewhere_and_tables_made_anew",
    208: "integration/test_drift_snapshots.py::test_directories_without_snapshots_are_listed",
    209: "integration/test_drift_snapshots.py::test_directories_without_snapshots_are_listed",
    211: "integration/test_drift_snapshots.py::test_all_changes_are_found_and_nothing_else_is_listed",
    212: "integration/test_drift_snapshots.py::test_partitions_elsewhere_and_tables_made_anew",
    214: "integration/test_copy.py::test_every_kind_of_file_at_once",
    217: "integration/test_one_nameservice.py::test_each_side_means_its_own",
    218: "integration/test_encryption_zones.py::test_a_database_goes_from_zone_to_zone",  # read and written with each side's keys
    223: "integration/test_load.py::test_a_database_that_is_marked_as_incompatible_is_left_alone",
    229: "integration/test_policy_change.py::test_regular_expressions_in_statements",
    230: "unit/statements/test_parser.py::test_broken_statement_names_the_place_and_the_forms",
    232: "integration/test_policy_change.py::test_transactional_tables_that_come_into_the_policy",
    233: "integration/test_policy_change.py::test_regular_expressions_in_statements",
    235: "integration/test_failing_over.py::test_there_and_back_and_there_again",
    236: "integration/test_failing_over.py::test_there_and_back_and_there_again",
    238: "integration/test_failing_over.py::test_killed_at_every_step",
    239: "integration/test_failing_over.py::test_there_and_back_and_there_again",
    241: "integration/test_failing_over.py::test_read_only_databases_and_a_failback_without_changes",
    242: "integration/test_failing_over.py::test_transactions",  # the first window is the failover's own
    244: "integration/test_failing_over.py::test_read_only_databases_and_a_failback_without_changes",
    245: "integration/test_failing_over.py::test_killed_at_every_step",
    247: "integration/test_failing_over.py::test_there_and_back_and_there_again",
    248: "integration/test_failing_over.py::test_unplanned",
    250: "unit/failover/test_phases.py::test_an_opened_database_is_no_replica_and_remembers_what_it_was",
    251: "integration/test_failing_over.py::test_there_and_back_and_there_again",
    254: "integration/test_operator.py::test_each_load_keeps_its_whole_report",
    256: "integration/test_operator.py::test_retention_deletes_old_reports",
    257: "integration/test_sensor_not_now.py::test_windows_start_at_the_times_of_the_schedule_once_each",
    259: "integration/test_verification.py::test_drift_on_either_side_is_told",
}
