# Only what this project uses of the bindings generated from hive_metastore.thrift (package pyiceberg[hive]).

from typing import Any, ClassVar

from thrift.Thrift import TException

class _Struct:
    thrift_spec: ClassVar[tuple[Any, ...]]

class PrincipalType:
    USER: int
    ROLE: int
    GROUP: int

class LockType:
    SHARED_READ: int
    SHARED_WRITE: int
    EXCLUSIVE: int
    EXCL_WRITE: int

class LockLevel:
    DB: int
    TABLE: int
    PARTITION: int

class LockState:
    ACQUIRED: int
    WAITING: int
    ABORT: int
    NOT_ACQUIRED: int

class DataOperationType:
    NO_TXN: int

class ClientCapability:
    INSERT_ONLY_TABLES: int

class FieldSchema(_Struct):
    name: str
    type: str
    comment: str | None
    def __init__(self, name: str = ..., type: str = ..., comment: str | None = ...) -> None: ...

class SerDeInfo(_Struct):
    name: str | None
    serializationLib: str
    parameters: dict[str, str]
    description: str | None
    serializerClass: str | None
    deserializerClass: str | None
    def __init__(
        self,
        name: str | None = ...,
        serializationLib: str = ...,
        parameters: dict[str, str] = ...,
        description: str | None = ...,
        serializerClass: str | None = ...,
        deserializerClass: str | None = ...,
    ) -> None: ...

class Order(_Struct):
    col: str
    order: int
    def __init__(self, col: str = ..., order: int = ...) -> None: ...

class SkewedInfo(_Struct):
    skewedColNames: list[str]
    skewedColValues: list[list[str]]
    skewedColValueLocationMaps: dict[tuple[str, ...], str]
    def __init__(
        self,
        skewedColNames: list[str] = ...,
        skewedColValues: list[list[str]] = ...,
        skewedColValueLocationMaps: dict[tuple[str, ...], str] = ...,
    ) -> None: ...

class StorageDescriptor(_Struct):
    cols: list[FieldSchema]
    location: str | None
    inputFormat: str | None
    outputFormat: str | None
    compressed: bool
    numBuckets: int
    serdeInfo: SerDeInfo
    bucketCols: list[str] | None
    sortCols: list[Order] | None
    parameters: dict[str, str]
    skewedInfo: SkewedInfo | None
    storedAsSubDirectories: bool | None
    def __init__(
        self,
        cols: list[FieldSchema] = ...,
        location: str | None = ...,
        inputFormat: str | None = ...,
        outputFormat: str | None = ...,
        compressed: bool = ...,
        numBuckets: int = ...,
        serdeInfo: SerDeInfo = ...,
        bucketCols: list[str] | None = ...,
        sortCols: list[Order] | None = ...,
        parameters: dict[str, str] = ...,
        skewedInfo: SkewedInfo | None = ...,
        storedAsSubDirectories: bool | None = ...,
    ) -> None: ...

class DatabaseType:
    NATIVE: int
    REMOTE: int

class Database(_Struct):
    name: str
    description: str | None
    locationUri: str | None
    parameters: dict[str, str]
    ownerName: str | None
    ownerType: int | None
    catalogName: str | None
    createTime: int | None
    managedLocationUri: str | None
    type: int | None
    def __init__(
        self,
        name: str = ...,
        description: str | None = ...,
        locationUri: str | None = ...,
        parameters: dict[str, str] = ...,
        *,
        ownerName: str | None = ...,
        ownerType: int | None = ...,
        catalogName: str | None = ...,
        createTime: int | None = ...,
        managedLocationUri: str | None = ...,
        type: int | None = ...,
    ) -> None: ...

class Table(_Struct):
    tableName: str
    dbName: str
    owner: str | None
    createTime: int
    lastAccessTime: int
    retention: int
    sd: StorageDescriptor
    partitionKeys: list[FieldSchema]
    parameters: dict[str, str]
    viewOriginalText: str | None
    viewExpandedText: str | None
    tableType: str
    temporary: bool | None
    rewriteEnabled: bool | None
    creationMetadata: Any
    catName: str | None
    ownerType: int | None
    writeId: int | None
    txnId: int | None
    accessType: Any
    id: int | None
    privileges: object | None
    colStats: ColumnStatistics | None
    def __init__(
        self,
        tableName: str = ...,
        dbName: str = ...,
        owner: str | None = ...,
        createTime: int = ...,
        lastAccessTime: int = ...,
        retention: int = ...,
        sd: StorageDescriptor = ...,
        partitionKeys: list[FieldSchema] = ...,
        parameters: dict[str, str] = ...,
        viewOriginalText: str | None = ...,
        viewExpandedText: str | None = ...,
        tableType: str = ...,
        *,
        temporary: bool | None = ...,
        rewriteEnabled: bool | None = ...,
        creationMetadata: Any = ...,
        catName: str | None = ...,
        ownerType: int | None = ...,
        writeId: int | None = ...,
        privileges: Any = ...,
        colStats: Any = ...,
    ) -> None: ...

class Partition(_Struct):
    values: list[str]
    dbName: str
    tableName: str
    createTime: int
    lastAccessTime: int
    sd: StorageDescriptor
    parameters: dict[str, str]
    catName: str | None
    writeId: int | None
    colStats: ColumnStatistics | None
    def __init__(
        self,
        values: list[str] = ...,
        dbName: str = ...,
        tableName: str = ...,
        createTime: int = ...,
        lastAccessTime: int = ...,
        sd: StorageDescriptor = ...,
        parameters: dict[str, str] = ...,
        *,
        catName: str | None = ...,
        writeId: int | None = ...,
        colStats: Any = ...,
    ) -> None: ...

class ResourceUri(_Struct):
    resourceType: int
    uri: str
    def __init__(self, resourceType: int = ..., uri: str = ...) -> None: ...

class Function(_Struct):
    functionName: str
    dbName: str
    className: str
    ownerName: str | None
    ownerType: int | None
    createTime: int
    functionType: int
    resourceUris: list[ResourceUri] | None
    catName: str | None
    def __init__(
        self,
        functionName: str = ...,
        dbName: str = ...,
        className: str = ...,
        ownerName: str | None = ...,
        ownerType: int | None = ...,
        createTime: int = ...,
        functionType: int = ...,
        resourceUris: list[ResourceUri] | None = ...,
        catName: str | None = ...,
    ) -> None: ...

class NotificationEvent(_Struct):
    eventId: int
    eventTime: int
    eventType: str
    dbName: str | None
    tableName: str | None
    message: str
    messageFormat: str | None
    catName: str | None
    def __init__(
        self,
        eventId: int = ...,
        eventTime: int = ...,
        eventType: str = ...,
        dbName: str | None = ...,
        tableName: str | None = ...,
        message: str = ...,
        messageFormat: str | None = ...,
        catName: str | None = ...,
    ) -> None: ...

class NotificationEventRequest(_Struct):
    def __init__(self, lastEvent: int = ..., maxEvents: int | None = ...) -> None: ...

class NotificationEventResponse(_Struct):
    events: list[NotificationEvent]

class CurrentNotificationEventId(_Struct):
    eventId: int

class CmRecycleRequest(_Struct):
    def __init__(self, dataPath: str | None = ..., purge: bool | None = ...) -> None: ...

class InsertEventRequestData(_Struct):
    def __init__(
        self,
        replace: bool | None = ...,
        filesAdded: list[str] = ...,
        filesAddedChecksum: list[str] | None = ...,
        subDirectoryList: list[str] | None = ...,
        partitionVal: list[str] | None = ...,
    ) -> None: ...

class FireEventRequestData(_Struct):
    def __init__(self, insertData: InsertEventRequestData | None = ...) -> None: ...

class FireEventRequest(_Struct):
    def __init__(
        self,
        successful: bool = ...,
        data: FireEventRequestData = ...,
        dbName: str | None = ...,
        tableName: str | None = ...,
        partitionVals: list[str] | None = ...,
        catName: str | None = ...,
    ) -> None: ...

class EnvironmentContext(_Struct):
    def __init__(self, properties: dict[str, str] = ...) -> None: ...

class ClientCapabilities(_Struct):
    def __init__(self, values: list[int] = ...) -> None: ...

class GetDatabaseRequest(_Struct):
    def __init__(
        self,
        name: str = ...,
        catalogName: str | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class GetTableRequest(_Struct):
    def __init__(
        self,
        dbName: str = ...,
        tblName: str = ...,
        capabilities: ClientCapabilities | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class GetTableResult(_Struct):
    table: Table

class GetTablesRequest(_Struct):
    def __init__(
        self,
        dbName: str = ...,
        tblNames: list[str] | None = ...,
        capabilities: ClientCapabilities | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class GetTablesResult(_Struct):
    tables: list[Table]

class CreateTableRequest(_Struct):
    def __init__(
        self,
        table: Table = ...,
        envContext: EnvironmentContext | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class AlterTableRequest(_Struct):
    def __init__(
        self,
        catName: str | None = ...,
        dbName: str = ...,
        tableName: str = ...,
        table: Table = ...,
        environmentContext: EnvironmentContext | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class GetPartitionsByNamesRequest(_Struct):
    def __init__(
        self,
        db_name: str = ...,
        tbl_name: str = ...,
        names: list[str] | None = ...,
        *,
        processorCapabilities: list[str] | None = ...,
        processorIdentifier: str | None = ...,
    ) -> None: ...

class GetPartitionsByNamesResult(_Struct):
    partitions: list[Partition]

class AddPartitionsRequest(_Struct):
    def __init__(
        self, dbName: str = ..., tblName: str = ..., parts: list[Partition] = ..., ifNotExists: bool = ..., needResult: bool = ...
    ) -> None: ...

class RequestPartsSpec(_Struct):
    def __init__(self, names: list[str] | None = ...) -> None: ...

class DropPartitionsRequest(_Struct):
    def __init__(
        self,
        dbName: str = ...,
        tblName: str = ...,
        parts: RequestPartsSpec = ...,
        deleteData: bool | None = ...,
        ifExists: bool | None = ...,
        ignoreProtection: bool | None = ...,
        environmentContext: EnvironmentContext | None = ...,
        needResult: bool | None = ...,
    ) -> None: ...

class LockComponent(_Struct):
    def __init__(
        self,
        type: int = ...,
        level: int = ...,
        dbname: str = ...,
        tablename: str | None = ...,
        partitionname: str | None = ...,
        operationType: int | None = ...,
        isTransactional: bool | None = ...,
    ) -> None: ...

class LockRequest(_Struct):
    def __init__(
        self,
        component: list[LockComponent] = ...,
        txnid: int | None = ...,
        user: str = ...,
        hostname: str = ...,
        agentInfo: str | None = ...,
    ) -> None: ...

class LockResponse(_Struct):
    lockid: int
    state: int

class UnlockRequest(_Struct):
    def __init__(self, lockid: int = ...) -> None: ...

class HeartbeatRequest(_Struct):
    def __init__(self, lockid: int | None = ..., txnid: int | None = ...) -> None: ...

class ShowLocksRequest(_Struct):
    def __init__(self, dbname: str | None = ..., tablename: str | None = ...) -> None: ...

class ShowLocksResponseElement(_Struct):
    lockid: int
    txnid: int | None
    dbname: str
    tablename: str | None
    state: int
    type: int
    lastheartbeat: int
    acquiredat: int | None
    user: str
    hostname: str
    agentInfo: str | None

class ShowLocksResponse(_Struct):
    locks: list[ShowLocksResponseElement] | None

class _Fault(TException):
    message: str | None

class MetaException(_Fault): ...
class NoSuchObjectException(_Fault): ...
class UnknownDBException(_Fault): ...
class UnknownTableException(_Fault): ...
class AlreadyExistsException(_Fault): ...
class ConfigValSecurityException(_Fault): ...
class InvalidOperationException(_Fault): ...
class InvalidObjectException(_Fault): ...
class NoSuchLockException(_Fault): ...
class NoSuchTxnException(_Fault): ...
class TxnAbortedException(_Fault): ...

class GetAllFunctionsResponse(_Struct):
    functions: list[Function] | None

class SQLPrimaryKey(_Struct): ...
class SQLForeignKey(_Struct): ...
class SQLUniqueConstraint(_Struct): ...
class SQLNotNullConstraint(_Struct): ...
class SQLDefaultConstraint(_Struct): ...
class SQLCheckConstraint(_Struct): ...

class PrimaryKeysRequest(_Struct):
    def __init__(self, db_name: str, tbl_name: str, catName: str) -> None: ...

class PrimaryKeysResponse(_Struct):
    primaryKeys: list[SQLPrimaryKey] | None

class ForeignKeysRequest(_Struct):
    def __init__(
        self,
        parent_db_name: str | None,
        parent_tbl_name: str | None,
        foreign_db_name: str | None,
        foreign_tbl_name: str | None,
        catName: str,
    ) -> None: ...

class ForeignKeysResponse(_Struct):
    foreignKeys: list[SQLForeignKey] | None

class UniqueConstraintsRequest(_Struct):
    def __init__(self, catName: str, db_name: str, tbl_name: str) -> None: ...

class UniqueConstraintsResponse(_Struct):
    uniqueConstraints: list[SQLUniqueConstraint] | None

class NotNullConstraintsRequest(_Struct):
    def __init__(self, catName: str, db_name: str, tbl_name: str) -> None: ...

class NotNullConstraintsResponse(_Struct):
    notNullConstraints: list[SQLNotNullConstraint] | None

class DefaultConstraintsRequest(_Struct):
    def __init__(self, catName: str, db_name: str, tbl_name: str) -> None: ...

class DefaultConstraintsResponse(_Struct):
    defaultConstraints: list[SQLDefaultConstraint] | None

class CheckConstraintsRequest(_Struct):
    def __init__(self, catName: str, db_name: str, tbl_name: str) -> None: ...

class CheckConstraintsResponse(_Struct):
    checkConstraints: list[SQLCheckConstraint] | None

class AddPrimaryKeyRequest(_Struct):
    def __init__(self, primaryKeyCols: list[SQLPrimaryKey]) -> None: ...

class AddForeignKeyRequest(_Struct):
    def __init__(self, foreignKeyCols: list[SQLForeignKey]) -> None: ...

class AddUniqueConstraintRequest(_Struct):
    def __init__(self, uniqueConstraintCols: list[SQLUniqueConstraint]) -> None: ...

class AddNotNullConstraintRequest(_Struct):
    def __init__(self, notNullConstraintCols: list[SQLNotNullConstraint]) -> None: ...

class AddDefaultConstraintRequest(_Struct):
    def __init__(self, defaultConstraintCols: list[SQLDefaultConstraint]) -> None: ...

class AddCheckConstraintRequest(_Struct):
    def __init__(self, checkConstraintCols: list[SQLCheckConstraint]) -> None: ...

class DropConstraintRequest(_Struct):
    def __init__(self, dbname: str, tablename: str, constraintname: str, catName: str) -> None: ...

class ColumnStatisticsObj(_Struct):
    colName: str
    colType: str

class ColumnStatisticsDesc(_Struct):
    isTblLevel: bool
    dbName: str
    tableName: str
    partName: str | None
    lastAnalyzed: int | None
    catName: str | None
    def __init__(
        self,
        isTblLevel: bool = ...,
        dbName: str = ...,
        tableName: str = ...,
        partName: str | None = ...,
        lastAnalyzed: int | None = ...,
        catName: str | None = ...,
    ) -> None: ...

class ColumnStatistics(_Struct):
    statsDesc: ColumnStatisticsDesc
    statsObj: list[ColumnStatisticsObj]
    engine: str | None
    def __init__(
        self, statsDesc: ColumnStatisticsDesc = ..., statsObj: list[ColumnStatisticsObj] = ..., *, engine: str | None = ...
    ) -> None: ...

class TableStatsRequest(_Struct):
    def __init__(self, dbName: str, tblName: str, colNames: list[str], catName: str, *, engine: str) -> None: ...

class TableStatsResult(_Struct):
    tableStats: list[ColumnStatisticsObj] | None

class ListStoredProcedureRequest(_Struct):
    def __init__(self, catName: str, dbName: str) -> None: ...

class ListPackageRequest(_Struct):
    def __init__(self, catName: str, dbName: str) -> None: ...

class PartitionsStatsRequest(_Struct):
    def __init__(
        self, dbName: str, tblName: str, colNames: list[str], partNames: list[str], catName: str, *, engine: str
    ) -> None: ...

class PartitionsStatsResult(_Struct):
    partStats: dict[str, list[ColumnStatisticsObj]] | None

class SetPartitionsStatsRequest(_Struct):
    def __init__(self, colStats: list[ColumnStatistics], needMerge: bool, *, engine: str) -> None: ...

class TxnType:
    DEFAULT: int
    REPL_CREATED: int
    READ_ONLY: int
    COMPACTION: int
    MATER_VIEW_REBUILD: int
    SOFT_DELETE: int

class OpenTxnRequest(_Struct):
    def __init__(
        self,
        num_txns: int = ...,
        user: str = ...,
        hostname: str = ...,
        agentInfo: str = ...,
        replPolicy: str | None = ...,
        replSrcTxnIds: list[int] | None = ...,
        txn_type: int = ...,
    ) -> None: ...

class HeartbeatTxnRangeRequest(_Struct):
    def __init__(self, min: int, max: int) -> None: ...

class HeartbeatTxnRangeResponse(_Struct):
    aborted: set[int]
    nosuch: set[int]

class OpenTxnsResponse(_Struct):
    txn_ids: list[int]

class WriteEventInfo(_Struct):
    writeId: int
    database: str
    table: str
    files: str
    partition: str | None
    tableObj: str | None
    partitionObj: str | None
    def __init__(
        self,
        writeId: int = ...,
        database: str = ...,
        table: str = ...,
        files: str = ...,
        partition: str | None = ...,
        tableObj: str | None = ...,
        partitionObj: str | None = ...,
    ) -> None: ...

class CommitTxnRequest(_Struct):
    def __init__(
        self,
        txnid: int = ...,
        replPolicy: str | None = ...,
        writeEventInfos: list[WriteEventInfo] | None = ...,
        txn_type: int | None = ...,
    ) -> None: ...

class AbortTxnRequest(_Struct):
    def __init__(self, txnid: int = ..., replPolicy: str | None = ..., txn_type: int | None = ...) -> None: ...

class AbortTxnsRequest(_Struct):
    txn_ids: list[int]
    def __init__(self, txn_ids: list[int] = ...) -> None: ...

class TxnToWriteId(_Struct):
    txnId: int
    writeId: int
    def __init__(self, txnId: int = ..., writeId: int = ...) -> None: ...

class AllocateTableWriteIdsRequest(_Struct):
    reallocate: bool | None  # added by hive_replication.metastore.replicated_transactions
    def __init__(
        self,
        dbName: str = ...,
        tableName: str = ...,
        txnIds: list[int] | None = ...,
        replPolicy: str | None = ...,
        srcTxnToWriteIdList: list[TxnToWriteId] | None = ...,
    ) -> None: ...

class AllocateTableWriteIdsResponse(_Struct):
    txnToWriteIds: list[TxnToWriteId]

class MaxAllocatedTableWriteIdRequest(_Struct):
    def __init__(self, dbName: str = ..., tableName: str = ...) -> None: ...

class MaxAllocatedTableWriteIdResponse(_Struct):
    maxWriteId: int

class GetValidWriteIdsRequest(_Struct):
    def __init__(self, fullTableNames: list[str] = ..., validTxnList: str | None = ..., writeId: int | None = ...) -> None: ...

class TableValidWriteIds(_Struct):
    fullTableName: str
    writeIdHighWaterMark: int
    invalidWriteIds: list[int] | None
    abortedBits: bytes | None

class GetValidWriteIdsResponse(_Struct):
    tblValidWriteIds: list[TableValidWriteIds]

class GetAllWriteEventInfoRequest(_Struct):
    def __init__(self, txnId: int = ..., dbName: str | None = ..., tableName: str | None = ...) -> None: ...

class GetOpenTxnsRequest(_Struct):
    def __init__(self, excludeTxnTypes: list[int] | None = ...) -> None: ...

class TxnInfo(_Struct):
    id: int
    user: str
    hostname: str

class GetOpenTxnsInfoResponse(_Struct):
    open_txns: list[TxnInfo]

class GetOpenTxnsResponse(_Struct):
    txn_high_water_mark: int
    open_txns: list[int]
    abortedBits: bytes

class ReplTblWriteIdStateRequest(_Struct):
    def __init__(
        self,
        validWriteIdlist: str = ...,
        user: str = ...,
        hostName: str = ...,
        dbName: str = ...,
        tableName: str = ...,
        partNames: list[str] | None = ...,
    ) -> None: ...

class HiveObjectType:
    GLOBAL: int
    DATABASE: int
    TABLE: int
    PARTITION: int
    COLUMN: int
    DATACONNECTOR: int

class GrantRevokeType:
    GRANT: int
    REVOKE: int

class HiveObjectRef(_Struct):
    objectType: int
    dbName: str | None
    objectName: str | None
    partValues: list[str] | None
    columnName: str | None
    catName: str | None
    def __init__(
        self,
        objectType: int | None = ...,
        dbName: str | None = ...,
        objectName: str | None = ...,
        partValues: list[str] | None = ...,
        columnName: str | None = ...,
        catName: str | None = ...,
    ) -> None: ...

class PrivilegeGrantInfo(_Struct):
    privilege: str
    createTime: int
    grantor: str | None
    grantorType: int | None
    grantOption: bool
    def __init__(
        self,
        privilege: str = ...,
        createTime: int = ...,
        grantor: str | None = ...,
        grantorType: int | None = ...,
        grantOption: bool = ...,
    ) -> None: ...

class HiveObjectPrivilege(_Struct):
    hiveObject: HiveObjectRef
    principalName: str
    principalType: int
    grantInfo: PrivilegeGrantInfo
    authorizer: str | None
    def __init__(
        self,
        hiveObject: HiveObjectRef = ...,
        principalName: str = ...,
        principalType: int = ...,
        grantInfo: PrivilegeGrantInfo = ...,
        authorizer: str | None = ...,
    ) -> None: ...

class PrivilegeBag(_Struct):
    privileges: list[HiveObjectPrivilege]
    def __init__(self, privileges: list[HiveObjectPrivilege] = ...) -> None: ...

class GrantRevokePrivilegeRequest(_Struct):
    def __init__(self, requestType: int = ..., privileges: PrivilegeBag = ..., revokeGrantOption: bool | None = ...) -> None: ...

class Role(_Struct):
    roleName: str
    createTime: int
    ownerName: str | None
    def __init__(self, roleName: str = ..., createTime: int = ..., ownerName: str | None = ...) -> None: ...

class RolePrincipalGrant(_Struct):
    roleName: str
    principalName: str
    principalType: int
    grantOption: bool
    grantTime: int
    grantorName: str | None
    grantorPrincipalType: int | None

class GetPrincipalsInRoleRequest(_Struct):
    def __init__(self, roleName: str = ...) -> None: ...

class GetPrincipalsInRoleResponse(_Struct):
    principalGrants: list[RolePrincipalGrant] | None

class GrantRevokeRoleRequest(_Struct):
    def __init__(
        self,
        requestType: int = ...,
        roleName: str = ...,
        principalName: str = ...,
        principalType: int = ...,
        grantor: str | None = ...,
        grantorType: int | None = ...,
        grantOption: bool | None = ...,
    ) -> None: ...
