"""Walks through boundaries, compaction, steering and questions. `walks` says how they are written."""

from __future__ import annotations

from rho_conformance.driver import JsonMap
from rho_conformance.generate import worlds as w

TABLE: dict[str, tuple[JsonMap, str]] = {
    "boundary at completion, then compaction": (
        w.FULL,
        "start boundary:none model_end:sync tool_end:ok compactor:ok boundary:none model_end:text boundary:input "
        "compactor:ok boundary:none model_end:text boundary:none",
    ),
    "boundary and steer": (
        w.BOUND,
        "start boundary:input steer model_end:sync steer tool_end:ok boundary:input model_end:text steer "
        "boundary:none boundary:none model_end:text boundary:none",
    ),
    "boundary gone": (w.BOUND, "start boundary:none model_end:sync tool_end:ok boundary:gone"),
    "boundary input, then the reader is lost": (
        w.BOUND,
        "start boundary:input model_item:delta close_reader model_item:delta",
    ),
    "boundary input, then a drop": (w.BOUND, "start boundary:input model_end:sync drop tool_late:return"),
    "boundary input, then a panic": (
        w.BOUND,
        "start boundary:input model_end:sync tool_end:ok boundary:input model_end:panic",
    ),
    "boundary inputs after text": (
        w.BOUND,
        "start boundary:none model_item:deltas model_end:streamed boundary:input boundary:none "
        "model_item:reasoning model_end:sync tool_end:ok boundary:input model_end:chunks boundary:input "
        "boundary:none model_end:thinking boundary:none",
    ),
    "boundary and cancel": (
        w.BOUND,
        "start boundary:none model_end:text cancel environment_late start cancel environment_late",
    ),
    "boundary with a job": (
        w.BOUND,
        "start boundary:none model_end:async tool_end:ok model_end:text boundary:none model_end:text boundary:none",
    ),
    "compactor fails": (w.KEEN, "start compactor:fail start compactor:interrupted start compactor:panic"),
    "compactor gives nothing": (w.KEEN, "start compactor:same"),
    "compacted, then the reader is lost": (
        w.KEEN,
        "start compactor:ok model_item:delta close_reader model_item:delta",
    ),
    "compacted, then a drop": (w.KEEN, "start compactor:ok model_item:delta drop model_late:text"),
    "compacted, then a panic": (w.KEEN, "start compactor:ok model_end:sync tool_end:panic"),
    "compact by hand": (w.KEEN, "append compact compactor:ok snapshot start compactor:ok model_end:text"),
    "no compaction while a job runs": (
        w.CLOSE,
        "start model_end:async model_end:async model_item:delta tool_end:ok tool_end:ok model_end:sync "
        "tool_end:ok compactor:ok model_end:text",
    ),
    "cancel in compaction": (w.KEEN, "start cancel environment_late"),
    "cooperative compactor": (
        {**w.KEEN, "compactor": "cooperative"},
        "start cancel compactor:ok start cancel compactor:fail start compactor:ok model_end:text",
    ),
    "steer in the last response": (w.TWO, "start model_item:delta steer model_end:streamed model_end:text"),
    "two steers and a retract": (
        w.TWO,
        "start model_end:sync steer steer retract:1 retract:1 tool_end:ok model_end:text retract:0",
    ),
    "claim, deliver": (
        w.STEER,
        "start steer model_item:claim model_item:deliver retract model_end:text model_end:text",
    ),
    "claim, release": (w.STEER, "start steer model_item:claim retract model_item:release retract model_end:text"),
    "delivered in later steps": (
        {**w.STEER, "max_steps": 6},
        "start model_end:async model_item:delta steer model_item:claim model_item:deliver tool_end:ok "
        "model_end:sync tool_end:ok model_end:retry advance:due steer model_item:claim model_item:deliver "
        "model_end:text model_end:text",
    ),
    "released while the response is announced": (
        {**w.STEER, "event_capacity": 1},
        "start steer model_item:claim hold model_end:text model_late:release read_all",
    ),
    "claimed in a failed attempt": (
        w.STEER,
        "start steer model_item:claim model_item:deliver model_end:retry advance:due retract model_end:text start "
        "steer model_item:claim model_end:retry advance:due model_end:text",
    ),
    "retract, then claim": (w.STEER, "start steer retract model_item:claim model_end:text"),
    "steer after the end": (w.TWO, "start model_end:text steer start steer cancel steer"),
    "two asks": (
        w.TWO,
        "start model_end:sync2 tool_item:0:ask tool_item:1:ask respond:1:no respond:0:yes tool_end:ok tool_end:ok "
        "model_end:text",
    ),
    "question answered while another waits": (
        w.TWO,
        "start model_end:sync2 tool_item:1:ask tool_item:0:progress respond tool_item:0:ask tool_end:1:ok "
        "respond:no tool_item:0:ask cancel",
    ),
    "same question again": (
        w.TWO,
        "start model_end:sync tool_item:ask respond:invalid respond:yes tool_item:again respond:no",
    ),
    "same question while it is open": (w.TWO, "start model_end:sync tool_item:ask tool_item:again respond:1"),
    "question of a job": (
        w.JOBS,
        "start model_end:async tool_item:ask model_item:delta tool_item:progress tool_end:ok model_end:text",
    ),
    "cancel with a question": (w.TWO, "start model_end:sync tool_item:ask cancel respond:1 tool_late:return"),
    "tool withdraws its question": (
        w.TWO,
        "start model_end:sync tool_item:ask tool_item:withdraw tool_end:ok model_end:text",
    ),
    "tool gives up its question": (w.TWO, "start model_end:sync tool_item:ask tool_end:ok respond:no model_end:text"),
    "boundary and retries": (
        w.BOUND,
        "start boundary:none model_end:retry advance:due model_end:empty model_end:sync tool_end:ok boundary:input "
        "model_end:retry advance:due model_end:text boundary:none",
    ),
    "boundary in the last step": (
        {**w.BOUND, "max_steps": 2},
        "start boundary:none model_end:sync tool_end:ok boundary:none model_end:text",
    ),
    "cancel while the compaction is announced": (
        {**w.KEEN, "event_capacity": 1},
        "hold start read compactor:ok cancel read_all",
    ),
    "steer between two results": (
        w.TWO,
        "start model_end:sync2 tool_end:ok steer tool_end:ok model_end:sync2 steer tool_end:1:fail steer tool_end:ok "
        "model_end:text",
    ),
    "each record awaited": (
        w.RECORDED,
        "start model_item:usage model_item:physical model_item:usage model_item:physical model_end:retry recorder:ok "
        "recorder:fail recorder:ok advance:due model_end:empty recorder:fail model_end:sync recorder:ok tool_end:ok "
        "model_item:usage model_end:text recorder:ok",
    ),
    "cancelled while recording": (
        w.RECORDED,
        "start model_item:delta model_end:sync cancel environment_late start model_item:delta model_item:physical "
        "model_end:retry cancel environment_late start model_end:empty cancel start model_item:physical "
        "model_end:text cancel start model_item:delta model_end:permanent cancel",
    ),
    "commands while recording": (
        w.RECORDED,
        "start model_end:text steer retract steer recorder:ok model_end:empty steer recorder:ok model_end:sync "
        "drop environment_late start model_end:sync shutdown",
    ),
    "the reader is lost while recording": (
        w.RECORDED,
        "start model_end:sync close_reader recorder:ok start model_end:retry close_reader recorder:ok start "
        "model_end:text close_reader recorder:ok",
    ),
    "jobs while recording": (
        w.RECORDED_JOBS,
        "start model_end:async recorder:ok model_end:async recorder:ok model_end:text tool_item:progress "
        "tool_item:ask tool_end:ok tool_end:panic recorder:ok model_end:async recorder:ok model_item:delta "
        "model_end:retry tool_end:fail recorder:ok advance:due model_end:text recorder:ok",
    ),
    "released while recording": (
        {**w.STEER, "recorder": "gated"},
        "start steer model_item:claim model_end:text model_late:release recorder:ok model_end:text recorder:ok",
    ),
    "recorded before a boundary": (
        {**w.BOUND, "recorder": "gated"},
        "start boundary:none model_end:text recorder:ok boundary:input boundary:none model_end:text close_reader "
        "recorder:ok",
    ),
    "cancelled beside a recorder that answers": (
        {**w.COOP, "recorder": "gated"},
        "start model_item:physical cancel model_item:physical model_end:text environment_late",
    ),
    "late compaction while the channel is full": (
        {**w.KEEN, "compactor": "cooperative", "event_capacity": 1},
        "hold start read cancel compactor:ok read_all",
    ),
    "compaction by hand and shutdown": (w.KEEN, "append compact shutdown compactor:ok environment_late snapshot"),
    "compaction at the last revision": (
        {**w.KEEN, "history": [{"user": "before"}], "revision": "max"},
        "start compactor:ok",
    ),
}
