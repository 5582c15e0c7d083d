"""Every admin action of one actor, grouped by subject. Composes the groups and holds no action itself."""

from __future__ import annotations

from ..model import Actor
from .access import AccessActions
from .actions import ActionContext
from .gates import GateActions
from .jobs import JobActions
from .limits import LimitActions
from .schedules import ScheduleActions
from .services import Services
from .system import SystemActions
from .tenants import TenantActions


class Operations(ActionContext):
    """Everything one actor may do on one app's store."""

    def __init__(self, services: Services, actor: Actor) -> None:
        super().__init__(services, actor)
        self.jobs = JobActions(self)
        self.schedules = ScheduleActions(self)
        self.gates = GateActions(self)
        self.tenants = TenantActions(self)
        self.limits = LimitActions(self)
        self.system = SystemActions(self)
        self.access = AccessActions(self)
