"""The ``ReplicationPolicy`` component: a policy in ``defs.yaml``, its tables from the source's metastore."""

# No postponed annotations here: Dagster reads those of the component's fields as types.
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, cast

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from dagster.components.utils.project_paths import get_local_state_path
from pydantic import BaseModel, ValidationError

from hive_replication.connect.databases import resolved, with_databases
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.policy import Policy, load_policy
from hive_replication.policy.wrong_setting import described
from repl_assets.build import MOST_TABLES, policy_definitions
from repl_assets.catalog.catalog import Catalog, read_catalog
from repl_assets.components.kept_files import write_whole
from repl_assets.components.last_policy import keep_policy, kept_policy, place_of
from repl_assets.components.policy_of_runs import give, given
from repl_assets.components.reading import BUDGET, note_reading, read_again, was_read
from repl_assets.dagster_private import DefinitionsLoadContext, DefinitionsLoadType
from sensors.catalog import catalog_sensor
from sensors.notification_log.sensor import DAY, SensorSettings

_LOG = logging.getLogger("dagster")


@dataclass
class ReplicationPolicy(dg.StateBackedComponent, dg.Resolvable):
    """Replicates Hive databases: assets of databases and tables, checks, jobs, and the sensor on the notification log.

    The policy is given here or in a file of its own. The catalog of its tables is the component's state: it is read when a code
    server loads the definitions, unless it was some minutes ago; while the source's metastore cannot be reached, the last known
    one stays. With another ``defs_state`` than files, or with ``refresh_if_dev: false``, Dagster's own rules say when it is read.
    """

    policy_file: Annotated[
        str | None, dg.Resolver.default(description="A policy's YAML file, as hive-repl reads it; relative to the project")
    ] = None
    policy: Annotated[dict[str, Any] | None, dg.Resolver.default(description="The policy itself, instead of a file")] = None
    interval_seconds: Annotated[
        int, dg.Resolver.default(description="Least seconds between the starts of two ticks of the sensor notification_log")
    ] = SensorSettings.interval
    listen_seconds: Annotated[
        float, dg.Resolver.default(description="Seconds for which a tick waits for events and looks at the log twice a second")
    ] = SensorSettings.listen
    event_ttl_days: Annotated[float, dg.Resolver.default(description="Days that the source keeps events")] = 10.0
    max_runs: Annotated[
        int, dg.Resolver.default(description="Runs of the policy at a time for which the sensor notification_log starts more")
    ] = SensorSettings.max_runs
    max_tables: Annotated[int, dg.Resolver.default(description="Tables that get assets of their own; all are replicated")] = (
        MOST_TABLES
    )
    defs_state: ResolvedDefsStateConfig = field(default_factory=DefsStateConfigArgs.local_filesystem)
    # Without types, so that they are no attributes of defs.yaml: the policy of the definitions, where it is kept, and why that
    # one is used; the catalog.
    in_use = cast("Policy | None", None)
    kept_at = cast("Path | None", None)
    catalog_at = cast("Path | None", None)
    problem = ""
    left_out = False  # another component of the project has its policy's name

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Loads the component: in a run with the policy that its code server has, whatever is written by now.

        With the policy of the last time, and an alarm, where the present one is not valid.
        """
        loaded = super().load(attributes, context)
        loaded.kept_at = place_of(context, loaded.policy_file)
        if of_code_server := given(context):
            loaded.in_use, loaded.problem = of_code_server
            return loaded
        try:
            loaded.in_use = loaded.written()
            for problem in loaded.in_use.without_effect() if loaded.in_use else ():
                _LOG.warning("a setting of %s does nothing: %s", loaded.policy_file or "defs.yaml", problem)
        except ReplicationError as error:
            if (last := kept_policy(loaded.kept_at)) is None:
                raise
            _LOG.warning("the policy %s as it was loaded last is used: %s", last.name, error)
            loaded.in_use, loaded.problem = last, str(error)
        if loaded.in_use:
            give(context, loaded.in_use, loaded.problem)
        return loaded

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where the catalog is kept; another source or policy has another one."""
        try:
            policy = self.settings()
            key = f"ReplicationPolicy[{_catalog_of(policy)}]" if policy else "ReplicationPolicy[none]"
        except ReplicationError:
            key = "ReplicationPolicy[unreadable]"
        return DefsStateConfig.from_args(self.defs_state, default_key=key)

    def settings(self) -> Policy | None:
        """The policy of the definitions, or None where neither a file nor a policy is named; raises as :meth:`written`."""
        return self.in_use or self.written()

    def written(self) -> Policy | None:
        """The policy as its file, or ``defs.yaml``, has it now.

        Raises:
            BadRequest: the file or the policy is wrong, or both are given.
        """
        if self.policy is not None and self.policy_file:
            raise BadRequest("give either policy or policy_file, not both")
        if self.policy is not None:
            try:
                return Policy.model_validate(self.policy)
            except ValidationError as error:
                raise BadRequest(f"the policy is not valid: {described(error)}") from error
        return load_policy(Path(self.policy_file)) if self.policy_file else None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Makes the definitions, and keeps the policy with which they could be made."""
        made = self._with_catalog(context)
        loading = DefinitionsLoadContext.get().load_type is DefinitionsLoadType.INITIALIZATION
        if loading and self.kept_at and not (self.problem or self.left_out) and (policy := self.settings()):
            keep_policy(self.kept_at, policy)
        return made

    def _with_catalog(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Reads the catalog where the definitions are loaded, not only reconstructed for a run, and makes the definitions.

        Dagster itself does so for ``dagster dev`` alone: elsewhere databases of patterns would never have assets.
        """
        config = self.defs_state_config
        by_dagster = config.management_type.value != "LOCAL_FILESYSTEM" or bool(os.getenv("DAGSTER_IS_DEV_CLI"))
        if by_dagster or not config.refresh_if_dev:
            return super().build_defs(context)
        try:
            state = get_local_state_path(config.key, context.project_root)
            kept = state.is_file() and os.access(state.parent, os.W_OK)  # else it is of an image's build, and old
            self.catalog_at = state
            loading = DefinitionsLoadContext.get().load_type is DefinitionsLoadType.INITIALIZATION
            if not kept or (loading and not was_read(state)):
                self.write_state_to_path(state)
            return super().build_defs(context)
        except OSError as error:
            _LOG.warning("the catalog cannot be kept, so each run reads it again: %s", error)
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "state"
            self.write_state_to_path(state)
            return self.build_defs_from_state(context, state)

    def write_state_to_path(self, state_path: Path) -> None:
        """Reads the catalog; keeps the last known one where the source cannot be reached, or others took the time."""
        policy = self.settings()
        if policy is None:
            return
        from hive_replication.metastore.client import Metastore

        kept = "tables are shown as last known" if state_path.is_file() else "no tables are known yet"
        patience = BUDGET.patience()
        if not patience:
            _LOG.warning("the source of policy %s is not read now, %s: reading others took all the time", policy.name, kept)
            return
        note_reading(state_path)
        try:
            with (
                BUDGET.used(),
                Metastore.of(policy.source, timeout=patience, retries=2) as metastore,
                Metastore.of(policy.target, timeout=min(20, patience), retries=1) as replica,
            ):
                there = resolved(policy, metastore, patience=patience)
                found = read_catalog(metastore, there, replica, _stored(policy, state_path) or Catalog())
        except ReplicationError as error:
            _LOG.warning("the source of policy %s cannot be read, %s: %s", policy.name, kept, error)
            return
        write_whole(state_path, found.to_json())

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:
        """Definitions from the policy and the catalog; none, with a warning, where no policy is named.

        None either where another policy of this name is used: an error would end the sensors of all policies, and their alarms.
        """
        policy = self.settings()
        if policy is None:
            _LOG.warning("no policy: set HIVE_REPL_CONFIG to a policy file, or write policy_file or policy into defs.yaml")
            return dg.Definitions()
        project: Sequence[ReplicationPolicy] = [self]
        if context is not None:  # pyright: ignore[reportUnnecessaryComparison] (in tests)
            project = context.component_tree.get_all_components(ReplicationPolicy)
        loaded = [(one, one.settings()) for one in project]
        first, *twins = _of_one_name(policy, loaded)
        self.left_out = first is not self
        if self.left_out:
            _LOG.warning("%s", _twin(policy, self, first))
            return dg.Definitions()
        problems = [f"the policy {policy.name} is used as it was loaded last: {self.problem}"] if self.problem else []
        problems += [_twin(policy, one, self) for one in twins]
        catalog = _known_catalog(policy, state_path)
        tables = {one.name: frozenset({*(t.name for t in one.tables), *dict(one.left_out)}) for one in catalog.databases}
        looking = dg.Definitions(
            sensors=[catalog_sensor(policy, tables, why_no_reload(loaded), partial(read_again, self.catalog_at))]
        )
        policy = with_databases(policy, (one.name for one in catalog.databases if policy.pattern_of(one.name)))
        if not policy.databases:
            return looking
        made = policy_definitions(
            policy,
            catalog,
            settings=SensorSettings(self.interval_seconds, self.listen_seconds, self.event_ttl_days * DAY, self.max_runs),
            most_tables=self.max_tables,
            problem="; ".join(problems),
            others={other.name for _, other in loaded if other} - {policy.name},
        )
        return dg.Definitions.merge(made, looking)


def why_no_reload(loaded: Collection[tuple[ReplicationPolicy, Policy | None]]) -> Callable[[], str]:
    """What tells why definitions are not to be loaded again for tables alone: a policy of the project is not what was loaded.

    An operator's change takes effect when the operator says so; and one that cannot be loaded would end all sensors.

    Args:
        loaded: all components of the project, with their policies.
    """

    def why() -> str:
        for one, policy in loaded:
            if one.problem:
                return f"{one.problem}; correct it, then Reload on Dagster's Deployment page"
            try:
                if one.written() != policy:
                    changed = one.policy_file or "defs.yaml"
                    return f"{changed} was changed; Reload on Dagster's Deployment page makes the change take effect"
            except ReplicationError as error:
                return str(error)
        return ""

    return why


def _of_one_name(policy: Policy, loaded: Iterable[tuple[ReplicationPolicy, Policy | None]]) -> list[ReplicationPolicy]:
    """The components whose policies have this one's name, of which those in Dagster are made; the one used last first."""

    def used(one: ReplicationPolicy) -> float:
        kept = kept_policy(one.kept_at)
        return one.kept_at.stat().st_mtime if one.kept_at and kept and kept.name == policy.name else 0.0

    return sorted((one for one, other in loaded if other and other.name == policy.name), key=used, reverse=True)


def _twin(policy: Policy, one: ReplicationPolicy, first: ReplicationPolicy) -> str:
    places = [each.policy_file or "defs.yaml" for each in (one, first)]
    return f"two policies are named {policy.name!r}: {places[0]} is left out, {places[1]} is used; give each a name of its own"


def _catalog_of(policy: Policy) -> str:
    what = policy.model_dump_json(include={"source", "databases", "tables", "exclude"})
    return f"{policy.name}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def _known_catalog(policy: Policy, state_path: Path | None) -> Catalog:
    if found := _stored(policy, state_path):
        return found
    _LOG.warning("no catalog of policy %s yet, so its tables have no assets", policy.name)
    return Catalog()


def _stored(policy: Policy, state_path: Path | None) -> Catalog | None:
    try:
        if state_path is not None and state_path.is_file():
            return Catalog.of_json(state_path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _LOG.warning("the stored catalog of policy %s is unreadable: %s", policy.name, error)
    return None
