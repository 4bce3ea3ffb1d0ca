"""Stimuli of the orca profile as types (scenario-format.md, "Further stimuli of the orca profile")."""

from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from rho_spec.scenario_base import Duration, Name, P, Strict, Text, V, exactly_one
from rho_spec.scenario_items import OneItem, To, True_


class Addressed(To):
    """What any map-valued host command may carry."""

    as_: V[Name] = Field(default=None, alias="as")


class Continue(Addressed):
    prompt: V[Text] = None
    images: V[list[Any]] = None
    token: V[Text] = None
    deadline: V[Duration] = None


class Token(To):
    new: Text
    parent: V[Text] = None


class ReadNotes(To):
    of: Text


class WorkerSpawn(Addressed):
    spawn: Text
    on_cancel: V[Literal["stop", "ignore"]] = None


class _Ending(OneItem, Addressed):
    id: Text


class WorkerEnd(_Ending):
    model_config = ConfigDict(json_schema_extra=exactly_one("return", "fail", "panic", "cancel"))
    _items = ("return", "fail", "panic", "cancel")

    return_: V[Text] = Field(default=None, alias="return")
    fail: V[Text] = None
    panic: V[True_] = None
    cancel: V[True_] = None


class Foreground(Addressed):
    spawn: Text
    token: V[Text] = None


class Stage(Strict):
    id: Text
    needs: V[list[Text]] = None


class WorkflowSubmit(Addressed):
    submit: Text
    stages: P[list[P[Stage]]]


class WorkflowStage(_Ending):
    model_config = ConfigDict(json_schema_extra=exactly_one("return", "fail"))
    _items = ("return", "fail")

    stage: Text
    return_: V[Text] = Field(default=None, alias="return")
    fail: V[Text] = None


class WorkflowCancel(Addressed):
    id: Text
    cancel: P[True_]


class ProcessSpawn(Addressed):
    spawn: Text


class ProcessEnd(_Ending):
    model_config = ConfigDict(json_schema_extra=exactly_one("exit", "output", "kill"))
    _items = ("exit", "output", "kill")

    exit: V[int] = None
    output: V[Text] = None
    kill: V[True_] = None


Worker: TypeAlias = WorkerSpawn | WorkerEnd
Workflow: TypeAlias = WorkflowSubmit | WorkflowStage | WorkflowCancel
Process: TypeAlias = ProcessSpawn | ProcessEnd
