"""Resources that a run has as its definitions were loaded, whatever its configuration holds of them."""

# No postponed annotations here: Dagster reads those of a resource as they stand.
from functools import cached_property

import dagster as dg
import yaml


class AsLoaded(dg.ConfigurableResource):
    """A resource whose values are the policy's; Dagster shows them in its description, and the Launchpad does not offer them.

    Else a run that is executed again, or started from a saved tab of the Launchpad, would act under the policy of then. Runs of
    earlier versions carry those values: they are not looked at.
    """

    def get_resource_definition(self) -> dg.ResourceDefinition:  # type: ignore[override]
        """The resource with its own values, which takes any configuration; always the same one, as Dagster compares them."""
        return self._definition

    @cached_property
    def _definition(self) -> dg.ResourceDefinition:
        values = self.model_dump()
        shown = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
        made = super().get_resource_definition()
        return made.configured(lambda _: values, dg.Permissive(), f"{type(self).__doc__}\n\n```yaml\n{shown}```")
