"""Walks to the end of a run in each phase, and from run to run. `walks` says how they are written."""

from __future__ import annotations

from rho_conformance.driver import JsonMap
from rho_conformance.generate import worlds as w

TABLE: dict[str, tuple[JsonMap, str]] = {
    "cancel at once": (w.TWO, "together start cancel model_end:text start model_end:text"),
    "cancel in the stream": (
        w.TWO,
        "start model_item:deltas model_item:fragment model_item:reasoning cancel model_late:text",
    ),
    "cancel in the batch": (w.TWO, "start model_end:sync2 tool_end:1:ok cancel tool_late:return tool_late:progress"),
    "cancel twice": (w.TWO, "start model_end:sync2 together cancel cancel cancel_stale"),
    "cancel twice in the stream and in the back-off": (
        w.TWO,
        "start model_item:delta together cancel cancel start model_end:retry together cancel cancel start "
        "together cancel cancel",
    ),
    "cancel beside the answer": (w.TWO, "start together model_end:text cancel start together cancel model_end:text"),
    "cancel by the tool": (w.TWO, "start model_end:sync tool_item:cancel_token tool_late:return"),
    "cancel by the model": (w.TWO, "start model_item:delta model_item:cancel_token model_late:text"),
    "dropped tokens cancel nothing": (
        w.TWO,
        "start model_item:drop_token model_item:delta model_end:sync2 tool_item:drop_token tool_end:ok "
        "tool_end:ok model_end:text start model_item:drop_token cancel",
    ),
    "cancel of a deaf model": (w.COOP, "start model_item:delta cancel model_item:delta model_end:text"),
    "cancel of a deaf model with a job": (
        w.COOP,
        "start model_end:async model_item:delta cancel tool_late:return model_end:retry",
    ),
    "cancel of a deaf model while a job's end is sent": (
        w.DEAF_SLOW,
        "start model_end:async2 hold model_item:delta tool_end:ok cancel read_all tool_end:panic model_end:text",
    ),
    "cancel of a deaf model, the job's time runs out": (
        w.DEAF_SLOW,
        "start model_end:async cancel tool_item:ask advance:due model_item:delta model_end:text",
    ),
    "deaf model says all that it can": (
        w.COOP,
        "start cancel model_item:deltas model_item:fragment model_item:reasoning model_item:usage "
        "model_item:summary model_item:physical model_item:search model_item:tokens model_item:hosted "
        "model_item:13 model_end:permanent",
    ),
    "drop in the stream": (w.TWO, "start model_item:delta drop model_late:text start model_end:text"),
    "drop in the batch": (w.TWO, "start model_end:mixed drop tool_late:return start model_end:text"),
    "drop with a question": (w.TWO, "start model_end:sync tool_item:ask drop start model_end:text"),
    "drop of a deaf model": (w.COOP, "start model_item:delta drop model_late:text start model_end:text"),
    "reader lost in the stream": (
        w.TWO,
        "start model_item:delta close_reader model_item:delta model_late:text start model_end:text",
    ),
    "reader lost in the batch": (
        w.TWO,
        "start model_end:sync2 close_reader tool_end:ok tool_late:return start model_end:text",
    ),
    "reader lost in the boundary": (
        w.BOUND,
        "start close_reader environment_late start boundary:none model_end:text boundary:none",
    ),
    "reader lost, then cancel": (w.TWO, "start model_end:sync close_reader cancel tool_late:return"),
    "reader lost at the terminal event": (w.TIGHT, "start hold model_end:text read close_reader"),
    "reader lost at the failure": (w.TIGHT, "start hold model_item:delta model_end:permanent close_reader"),
    "reader lost at the limit": (
        w.TIGHT,
        "start model_end:sync tool_end:ok hold model_end:sync read:2 read tool_end:ok close_reader",
    ),
    "shutdown in the stream": (w.TWO, "start model_item:delta shutdown model_late:text start"),
    "shutdown in the batch": (w.SLOW, "start model_end:mixed shutdown tool_end:ok advance:due start shutdown"),
    "shutdown of two sessions": (
        {**w.TWO, "sessions": ["s1", "s2"]},
        "start start model_end:sync shutdown tool_late:return start",
    ),
    "shutdown, and again": (
        {**w.COOP, "sessions": ["s1", "s2"]},
        "start start:1:0 model_item:delta shutdown shutdown model_end:text shutdown start",
    ),
    "model panics": (w.TWO, "start model_item:delta model_end:panic start model_end:text"),
    "outcome before the end": (w.TWO, "hold start outcome model_end:sync tool_end:ok model_end:text"),
    "outcome while a batch runs": (
        w.TIGHT,
        "start model_end:sync hold tool_item:progress outcome tool_item:progress tool_end:ok model_end:chunks",
    ),
    "second run": (
        w.TWO,
        "start model_end:sync tool_end:ok model_end:text start model_end:text cancel_stale:0 start start_busy "
        "model_end:text",
    ),
    "two sessions": (
        {**w.TWO, "sessions": ["s1", "s2"]},
        "start start model_end:1:sync model_end:text tool_end:ok model_end:text",
    ),
    "restored past": (
        w.OLD,
        "snapshot append start append model_end:text rewrite:replace start model_end:text rewrite:reset snapshot",
    ),
    "last revision": ({**w.TWO, "history": [{"user": "before"}], "revision": "max"}, "start model_end:text append"),
    "save, crash, go on": (
        w.OLD,
        "start model_end:text store:save start model_item:delta store:crash store:restore start model_end:text",
    ),
    "handles dropped": (w.TWO, "start handles:drop_session handles:drop_runtime model_end:text handles:query"),
    "no capacity": ({"event_capacity": 0}, "start"),
    "drop, then shutdown": (w.TWO, "start model_item:delta drop shutdown"),
    "drop of jobs": (w.JOBS, "start model_end:async2 model_item:delta drop tool_late:return start model_end:text"),
}
