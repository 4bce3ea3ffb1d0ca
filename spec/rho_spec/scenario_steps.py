"""The steps of a scenario file as types (scenario-format.md, "Steps")."""

from typing import Annotated, Literal

from pydantic import Field

from rho_spec.features import STIMULI
from rho_spec.scenario_base import Duration, Natural, OneKey, P, Text, V, unset
from rho_spec.scenario_expect import Expect
from rho_spec.scenario_items import BoundaryInput, Call, CompactorItem, ProviderItem, To, ToolItem, True_
from rho_spec.scenario_orca import (
    Addressed,
    Continue,
    Foreground,
    Process,
    ReadNotes,
    Token,
    Worker,
    Workflow,
)
from rho_spec.scenario_patterns import Message, Observation


class Start(Addressed):
    text: Text
    token: V[Text] = None
    deadline: V[Duration] = None
    event_capacity: V[int] = None
    continue_at_step_limit: V[bool] = None


class StartTool(Addressed):
    call: P[Call]


class Cancel(Addressed):
    token: V[Text] = None


class Steer(Addressed):
    text: Text


class Retract(Addressed):
    ref: Text


class Respond(Addressed):
    ref: Text
    answers: V[dict[str, V[list[Text]]]] = None


class Shutdown(Addressed):
    grace: V[Duration] = None


class Append(Addressed):
    message: P[Message]


class ReplaceHistory(Addressed):
    messages: P[list[P[Message]]]


class Save(Addressed):
    fail: V[True_] = None


class Restore(Addressed):
    from_: V[Literal["last_save"]] = Field(default=None, alias="from")


class Read(To):
    n: P[Natural | Literal["all"]]


class Answer(OneKey):
    """What `maybe` may hold: a stimulus that answers an upcall or a question."""

    provider: P[ProviderItem | Annotated[list[P[ProviderItem]], Field(min_length=1)]] = unset()
    tool: P[ToolItem | Annotated[list[P[ToolItem]], Field(min_length=1)]] = unset()
    compactor: P[CompactorItem] = unset()
    boundary: P[BoundaryInput | Literal["none", "gone"]] = unset()
    recorder: P[Literal["ok", "fail"]] = unset()
    respond: P[Respond] = unset()


class Stimulus(Answer):
    """What a driver is sent."""

    start: Start | Text = unset()
    start_tool: P[StartTool] = unset()
    cancel: P[Cancel] = unset()
    steer: P[Steer] = unset()
    retract: P[Retract] = unset()
    outcome: P[Addressed] = unset()
    read: P[Natural | Literal["all"] | Read] = unset()
    hold_reader: P[To] = unset()
    close_reader: P[To] = unset()
    drop: P[Addressed] = unset()
    drop_session: P[Addressed] = unset()
    drop_runtime: P[Addressed] = unset()
    shutdown: P[Shutdown] = unset()
    new_session: P[Addressed] = unset()
    compact: P[Addressed] = unset()
    reset: P[Addressed] = unset()
    clear: P[Addressed] = unset()
    reset_in_place: P[Addressed] = unset()
    append: P[Append] = unset()
    replace_history: P[ReplaceHistory] = unset()
    snapshot: P[Addressed] = unset()
    save: P[Save] = unset()
    restore: P[Restore] = unset()
    crash: P[Addressed] = unset()
    advance: P[Duration] = unset()
    query: P[Literal["state", "active", "runs", "processes", "pending"]] = unset()
    # The stimuli of the orca profile.
    continue_: P[Continue] = unset("continue")
    token: P[Token] = unset()
    subscribe: P[Addressed] = unset()
    read_notes: P[ReadNotes] = unset()
    worker: P[Worker] = unset()
    workers: P[Literal["cancel_all"]] = unset()
    foreground: P[Foreground] = unset()
    workflow: P[Workflow] = unset()
    process: P[Process] = unset()


class RaceStep(Stimulus):
    """What `together` may hold."""

    maybe: P[Answer] = unset()


class Step(RaceStep):
    """One step: a stimulus, or `until`, `check`, `together`, `maybe`."""

    until: Observation = unset()
    check: P[Expect] = unset()
    together: P[Annotated[list[P[RaceStep]], Field(min_length=1)]] = unset()


_MISSING = [name for name in STIMULI if name not in Step.model_fields]
if _MISSING:
    raise TypeError(f"stimuli of the protocol without a type here: {_MISSING}")
