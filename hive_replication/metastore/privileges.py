"""Calls about roles, their members, and grants, as SQL standard based authorization keeps them in the metastore."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hive_metastore.ttypes import (
    GetPrincipalsInRoleRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)

from hive_replication.metastore.server import Calls
from hive_replication.metastore.types import PrincipalType
from hive_replication.parallel import Threads

_CATALOG = "hive"
_SQL = "SQL"  # the authorizer that Hive's SQL standard based authorization names in its grants, from Hive 3.1 on
_KINDS = {PrincipalType.USER: "user", PrincipalType.ROLE: "role", PrincipalType.GROUP: "group"}


@dataclass(frozen=True, slots=True, order=True)
class Principal:
    """Who holds a privilege or a role.

    Args:
        kind: Hive's ``PrincipalType``: a user, a role or a group.
        name: as the metastore has it.
    """

    kind: int
    name: str

    def __str__(self) -> str:
        return f"{_KINDS.get(self.kind, 'principal')} {self.name}"

    @property
    def is_role(self) -> bool:
        """Whether it is a role."""
        return self.kind == PrincipalType.ROLE


@dataclass(frozen=True, slots=True, order=True)
class Securable:
    """What a privilege is granted on: a database, or what is named of it.

    Args:
        table: a table or view, "" for the database itself.
        values: of a partition; () for the table.
        column: of the table or partition, "" for all of it.
    """

    table: str = ""
    values: tuple[str, ...] = ()
    column: str = ""

    def of(self, db: str) -> str:
        """How people are shown it: ``db.table``, ``db.table/2026/01`` of a partition's values, ``db.table(column)``."""
        place = "/".join((f"{db}.{self.table}" if self.table else db, *self.values))
        return f"{place}({self.column})" if self.column else place


@dataclass(frozen=True, slots=True)
class Grant:
    """A privilege that somebody was granted.

    Args:
        on: what on.
        to: whom.
        privilege: e.g. ``SELECT``.
        option: whether they may grant it to others.
        grantor: who granted it.
    """

    on: Securable
    to: Principal
    privilege: str
    option: bool
    grantor: Principal

    @property
    def key(self) -> tuple[Securable, Principal, str]:
        """What is one privilege to whoever asks for it: who granted it does not matter."""
        return self.on, self.to, self.privilege


@dataclass(frozen=True, slots=True)
class Membership:
    """A role that somebody was granted.

    Args:
        role: its name.
        to: whom.
        option: whether they may grant it to others.
        grantor: who granted it.
    """

    role: str
    to: Principal
    option: bool
    grantor: Principal

    @property
    def key(self) -> tuple[str, Principal]:
        """What is one membership: who granted it does not matter."""
        return self.role, self.to


class Privileges(Calls):
    """Roles and grants. Whether an answer can be relied on, the caller finds by reading again."""

    def grants(self, db: str, tables: Iterable[str], threads: Threads) -> list[Grant]:
        """Grants on a database, some of its tables, and partitions and columns of its tables.

        A call for each table, at once: the one call that answers all grants of a metastore takes 0.25 ms for each of them. Those
        on partitions and columns are told of all databases only, or of one object; SQL standard based authorization has none.
        Grants of other authorizers are left out, such as those of Ranger, whose copies Hive's privilege synchronizer keeps here.
        """
        on_tables = (_of_table(db, table) for table in tables)
        below = (
            HiveObjectRef(HiveObjectType.PARTITION),
            HiveObjectRef(HiveObjectType.COLUMN),
            HiveObjectRef(HiveObjectType.COLUMN, partValues=["of any"]),
        )
        asked = (HiveObjectRef(HiveObjectType.DATABASE, db, catName=_CATALOG), *below, *on_tables)
        return [_grant(one) for answer in threads.map(self._privileges, asked) for one in answer if _belongs(one, db)]

    def grants_on_table(self, db: str, table: str) -> list[Grant]:
        """Grants on one table itself: none on its partitions and columns."""
        return [_grant(one) for one in self._privileges(_of_table(db, table)) if _belongs(one, db)]

    def _privileges(self, on: HiveObjectRef) -> list[HiveObjectPrivilege]:
        return self.call("list_privileges", lambda client: client.list_privileges(None, None, on))

    def grant(self, db: str, grants: Sequence[Grant]) -> None:
        """Grants privileges in one call: all of them or none.

        Raises:
            MetastoreError: the metastore refuses, as where one is granted already by the same grantor, or a role is not there.
        """
        self._change(GrantRevokeType.GRANT, db, grants)

    def revoke(self, db: str, grants: Sequence[Grant], *, option_only: bool = False) -> None:
        """Revokes privileges in one call, all of them or none; of a privilege that has several grantors, that of one.

        Args:
            db: database.
            grants: what is revoked; the grantor does not count.
            option_only: the privileges stay, but may not be granted to others any more.

        Raises:
            MetastoreError: the metastore refuses, as where one is not granted.
        """
        self._change(GrantRevokeType.REVOKE, db, grants, option_only=option_only)

    def _change(self, kind: int, db: str, grants: Sequence[Grant], *, option_only: bool = False) -> None:
        bag = PrivilegeBag(privileges=[_thrift(db, grant) for grant in grants])
        request = GrantRevokePrivilegeRequest(requestType=kind, privileges=bag, revokeGrantOption=option_only)
        self.call(f"grant_revoke_privileges {db}", lambda client: client.grant_revoke_privileges(request))

    def role_names(self) -> list[str]:
        """Names of all roles."""
        return self.call("get_role_names", lambda client: client.get_role_names())

    def create_role(self, name: str, owner: str) -> None:
        """Creates a role.

        Raises:
            MetastoreError: the metastore refuses, as where there is one of that name.
        """
        self.call(f"create_role {name}", lambda client: client.create_role(Role(roleName=name, createTime=0, ownerName=owner)))

    def members(self, role: str) -> list[Membership]:
        """Who has a role itself, not by another role; empty where there is no such role."""
        request = GetPrincipalsInRoleRequest(roleName=role)
        answer = self.call(f"get_principals_in_role {role}", lambda client: client.get_principals_in_role(request))
        return [
            Membership(
                one.roleName,
                Principal(one.principalType, one.principalName),
                bool(one.grantOption),
                Principal(one.grantorPrincipalType or PrincipalType.USER, one.grantorName or ""),
            )
            for one in answer.principalGrants or []
        ]

    def grant_role(self, membership: Membership) -> None:
        """Grants a role to somebody.

        Raises:
            MetastoreError: the metastore refuses, as where they have it, or the role would have itself as a member.
        """
        self._change_role(GrantRevokeType.GRANT, membership, option=membership.option)

    def revoke_role(self, membership: Membership, *, option_only: bool = False) -> None:
        """Revokes a role from somebody.

        Args:
            membership: what is revoked; the grantor does not count.
            option_only: they stay a member, but may not grant it to others any more.

        Raises:
            MetastoreError: the metastore refuses, as where they do not have it.
        """
        self._change_role(GrantRevokeType.REVOKE, membership, option=option_only)

    def _change_role(self, kind: int, membership: Membership, *, option: bool) -> None:
        request = GrantRevokeRoleRequest(
            requestType=kind,
            roleName=membership.role,
            principalName=membership.to.name,
            principalType=membership.to.kind,
            grantor=membership.grantor.name,
            grantorType=membership.grantor.kind,
            grantOption=option,
        )
        self.call(f"grant_revoke_role {membership.role}", lambda client: client.grant_revoke_role(request))


def _of_table(db: str, table: str) -> HiveObjectRef:
    return HiveObjectRef(HiveObjectType.TABLE, db, table, catName=_CATALOG)


def _belongs(found: HiveObjectPrivilege, db: str) -> bool:
    on = found.hiveObject
    ours = (on.catName or _CATALOG) == _CATALOG and (on.dbName or "").lower() == db
    return ours and (found.authorizer or _SQL) == _SQL


def _grant(found: HiveObjectPrivilege) -> Grant:
    on, info = found.hiveObject, found.grantInfo
    table = "" if on.objectType == HiveObjectType.DATABASE else (on.objectName or "").lower()
    return Grant(
        Securable(table, tuple(on.partValues or ()), on.columnName or ""),
        Principal(found.principalType, found.principalName),
        info.privilege,
        bool(info.grantOption),
        Principal(info.grantorType or PrincipalType.USER, info.grantor or ""),
    )


def _thrift(db: str, grant: Grant) -> HiveObjectPrivilege:
    on, kind = grant.on, HiveObjectType.DATABASE
    if on.table:
        kind = HiveObjectType.COLUMN if on.column else HiveObjectType.PARTITION if on.values else HiveObjectType.TABLE
    return HiveObjectPrivilege(
        hiveObject=HiveObjectRef(
            objectType=kind,
            dbName=db,
            objectName=on.table or None,
            partValues=list(on.values) or None,  # an empty list would be those of a partition
            columnName=on.column or None,
            catName=_CATALOG,
        ),
        principalName=grant.to.name,
        principalType=grant.to.kind,
        grantInfo=PrivilegeGrantInfo(
            privilege=grant.privilege,
            createTime=0,
            grantor=grant.grantor.name,
            grantorType=grant.grantor.kind,
            grantOption=grant.option,
        ),
        authorizer=_SQL,
    )
