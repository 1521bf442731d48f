"""Dagster's GraphQL API on an instance and the project's code server, and all that it tells of them."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_graphql.test.utils import execute_dagster_graphql

_ROOT = Path(__file__).parents[1]
_AT = {"repositoryLocationName": "hive_replication", "repositoryName": "__repository__"}

_METADATA = """metadataEntries { label description
  ... on TextMetadataEntry { text } ... on JsonMetadataEntry { jsonString } ... on MarkdownMetadataEntry { mdStr }
  ... on UrlMetadataEntry { url } ... on PathMetadataEntry { path } }"""
_ERROR = "message stack className causes { message stack } errorChain { error { message stack } }"
_FIELDS = "name description configTypeKey defaultValueAsJson"
_REPOSITORY = f"""query($at: RepositorySelector!) {{ repositoryOrError(repositorySelector: $at) {{ ... on Repository {{
  displayMetadata {{ key value }}
  jobs {{ name description tags {{ key value }} pipelineSnapshotId {_METADATA}
    modes {{ resources {{ name description configField {{ {_FIELDS} }} }} loggers {{ name configField {{ {_FIELDS} }} }} }} }}
  sensors {{ name description sensorState {{ typeSpecificData {{ ... on SensorData {{ lastCursor }} }} }} }}
  schedules {{ name description cronSchedule }}
  assetNodes {{ assetKey {{ path }} description {_METADATA} configField {{ {_FIELDS} }}
    assetMaterializations(limit: 10) {{ {_METADATA} }} assetObservations(limit: 10) {{ {_METADATA} }} }}
  allTopLevelResourceDetails {{ name description configFields {{ {_FIELDS} }} configuredValues {{ key value type }} }} }}
  ... on PythonError {{ {_ERROR} }} }} }}"""
_SCHEMA = f"""query($job: PipelineSelector!) {{ runConfigSchemaOrError(selector: $job) {{ ... on RunConfigSchema {{
  rootDefaultYaml allConfigTypes {{ key description ... on CompositeConfigType {{ fields {{ {_FIELDS} }} }} }} }} }}
  executionPlanOrError(pipeline: $job, mode: "default") {{
    ... on ExecutionPlan {{ steps {{ key metadata {{ key value }} }} }} }}
  pipelineSnapshotOrError(activePipelineSelector: $job) {{ ... on PipelineSnapshot {{ pipelineSnapshotId {_METADATA}
    modes {{ resources {{ name configField {{ {_FIELDS} }} }} }} }} }} }}"""
_RUNS = f"""{{ runsOrError(limit: 100) {{ ... on Runs {{ results {{ runId jobName status runConfigYaml tags {{ key value }}
  capturedLogs: eventConnection(limit: 1000) {{ events {{ __typename ... on MessageEvent {{ message }}
    ... on ErrorEvent {{ error {{ {_ERROR} }} }} ... on MaterializationEvent {{ {_METADATA} }}
    ... on ObservationEvent {{ {_METADATA} }}
    ... on LogsCapturedEvent {{ fileKey stepKeys }} }} }} }} }} }} }}"""
_LOGS = "query($key: [String!]!) { capturedLogs(logKey: $key) { stdout stderr } }"
_INSTANCE = f"""{{ instance {{ info runLauncher {{ name }} }} workspaceOrError {{ ... on Workspace {{ locationEntries {{ name
  loadStatus displayMetadata {{ key value }} locationOrLoadError {{ ... on PythonError {{ {_ERROR} }} }} }} }} }} }}"""
_ENVIRONMENT = """query($at: RepositorySelector!) { utilizedEnvVarsOrError(repositorySelector: $at) {
  ... on EnvVarWithConsumersList { results { envVarName envVarConsumers { name } } } } }"""
_TICK = f"""mutation($sensor: SensorSelector!) {{ sensorDryRun(selectorData: $sensor, cursor: "") {{ __typename
  ... on PythonError {{ {_ERROR} }} ... on DryRunInstigationTick {{ evaluationResult {{ skipReason cursor
    runRequests {{ runConfigYaml tags {{ key value }} }} error {{ {_ERROR} }} }} }} }} }}"""
_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
  ... on LaunchRunSuccess { run { runId } } } }"""


@dataclass(frozen=True)
class Webserver:
    """What answers GraphQL requests as the pages make them."""

    workspace: WorkspaceProcessContext

    def query(self, text: str, **variables: Any) -> Any:
        """The data of an answer; raises what its first error was made of."""
        return execute_dagster_graphql(self.workspace.create_request_context(), text, variables).data

    def launch(self, job: str, config: dict[str, Any]) -> str:
        """Launches a run as the Launchpad does; its id."""
        params = {"selector": self._job(job), "mode": "default", "runConfigData": config}
        found = self.query(_LAUNCH, params=params)["launchRun"]
        assert found["__typename"] == "LaunchRunSuccess", found
        return str(found["run"]["runId"])

    def tick(self, sensor: str) -> Any:
        """A tick as the page of a sensor makes it."""
        found = self.query(_TICK, sensor={**_AT, "sensorName": sensor})["sensorDryRun"]
        assert found["__typename"] == "DryRunInstigationTick", found
        return found

    def told(self) -> str:
        """All that is told of the definitions, of how each job can be launched, and of runs with their logs, as JSON."""
        repository = self.query(_REPOSITORY, at=_AT)["repositoryOrError"]
        assert "jobs" in repository, repository
        jobs = [self.query(_SCHEMA, job=self._job(one["name"])) for one in repository["jobs"]]
        assert all(one["runConfigSchemaOrError"] for one in jobs)
        runs = self.query(_RUNS)["runsOrError"]["results"]
        events = [(run["runId"], event) for run in runs for event in run["capturedLogs"]["events"] if "fileKey" in event]
        logs = [self.query(_LOGS, key=[run, "compute_logs", event["fileKey"]]) for run, event in events]
        return json.dumps([repository, jobs, runs, logs, self.query(_INSTANCE), self.query(_ENVIRONMENT, at=_AT)])

    @staticmethod
    def _job(name: str) -> dict[str, str]:
        return {**_AT, "pipelineName": name}


@contextmanager
def webserver(instance: dg.DagsterInstance) -> Generator[Webserver]:
    """A webserver, with a code server that has this process's environment.

    Args:
        instance: of a folder.
    """
    target = ModuleTarget("repl_assets.definitions", None, str(_ROOT), "hive_replication")
    with WorkspaceProcessContext(instance, target) as workspace:
        yield Webserver(workspace)
