"""Walks through attempts, tools and detached jobs. `walks` says how they are written."""

from __future__ import annotations

from rho_conformance.driver import JsonMap
from rho_conformance.generate import worlds as w

TABLE: dict[str, tuple[JsonMap, str]] = {
    "four attempts": (
        w.TWO,
        "start model_item:delta model_end:retry advance:before advance:due model_item:deltas model_end:rate "
        "advance:before advance:past model_item:fragment model_end:header advance:before advance:due "
        "model_item:delta model_end:retry model_late:text",
    ),
    "four attempts, the last one good": (
        w.TWO,
        "start model_end:retry advance:due model_end:empty model_item:usage model_end:retry advance:due "
        "model_item:delta model_end:streamed",
    ),
    "malformed twice": (w.TWO, "start model_item:deltas model_end:empty model_item:delta model_end:same_id"),
    "malformed, then well": (
        w.TWO,
        "start model_end:broken model_end:sync tool_end:ok model_end:empty model_end:text",
    ),
    "reused id": (w.JOBS, "start model_end:async model_end:open_id tool_end:ok model_end:text"),
    "physical retries": (
        w.TWO,
        "start model_item:usage model_item:delta model_item:physical model_item:tokens model_item:usage "
        "model_end:streamed",
    ),
    "all that a provider says": (
        {**w.TWO, "recorder": "auto"},
        "start model_item:reasoning model_item:delta model_item:summary model_item:delta model_item:search "
        "model_item:hosted model_item:usage model_item:tokens model_item:fragment model_item:fragment "
        "model_end:streamed tool_end:ok model_end:thinking",
    ),
    "what was returned is not what was streamed": (
        w.TWO,
        "start model_item:delta model_end:other start model_item:delta model_end:sync tool_end:ok model_end:other",
    ),
    "a provider speaks in a second attempt": (
        w.TWO,
        "start model_end:retry advance:due model_item:physical model_item:search model_item:hosted "
        "model_item:tokens model_end:retry advance:due model_item:physical model_item:search model_item:hosted "
        "model_item:14 model_end:sync tool_end:ok model_item:tokens model_end:permanent",
    ),
    "a provider speaks while a job runs": (
        w.JOBS,
        "start model_end:async model_item:physical model_item:search model_item:hosted model_item:tokens "
        "model_item:drop_token tool_item:drop_token model_end:streamed tool_end:ok",
    ),
    "a slower tier": (w.TWO, "start model_item:tier model_item:delta model_end:text"),
    "a slower tier after the cancel": (w.COOP, "start model_item:delta cancel model_item:tier model_end:text"),
    "flood": (w.TWO, "start hold flood model_end:streamed read:2 read_all"),
    "flood and cancel": (w.TWO, "start hold flood cancel read:2 model_late:text"),
    "failure after output": (
        w.TWO,
        "start model_item:reasoning model_item:delta model_item:fragment model_end:permanent",
    ),
    "a job runs as the request fails": (
        w.JOBS,
        "start model_end:async model_item:delta model_end:permanent tool_late:return start model_end:retry "
        "advance:due model_end:permanent",
    ),
    "failure after a step": (
        w.TWO,
        "start model_end:sync2 tool_end:ok tool_end:fail model_item:delta model_end:permanent",
    ),
    "back-off and cancel": (
        w.TWO,
        "start model_item:delta model_end:retry advance:before cancel advance:long model_late:text",
    ),
    "second back-off and cancel": (
        w.TWO,
        "start model_end:retry advance:due model_item:delta model_end:rate advance:second cancel advance:long "
        "model_late:delta",
    ),
    "back-off and steer": (
        w.TWO,
        "start model_end:retry steer advance:due retract model_end:text start model_end:retry steer advance:due "
        "model_end:text model_end:text",
    ),
    "back-off with a job": (w.JOBS, "start model_end:async model_end:retry tool_end:ok advance:due model_end:text"),
    "back-off with a job and cancel": (
        w.JOBS,
        "start model_end:async model_end:retry cancel advance:long tool_late:return",
    ),
    "back-off with a job that panics": (
        w.JOBS,
        "start model_end:async model_end:retry tool_item:progress tool_item:ask tool_end:panic advance:due "
        "model_end:text",
    ),
    "finish in reverse": (
        w.TWO,
        "start model_end:sync2 tool_item:1:progress tool_end:1:ok tool_end:ok model_end:text",
    ),
    "one at a time": (
        w.EXCL,
        "start model_end:sync2 tool_end:fail tool_end:ok model_end:sync_unknown tool_end:ok tool_end:ok model_end:text",
    ),
    "unknown, twice": (
        w.TWO,
        "start model_end:unknown model_end:sync_unknown tool_end:ok tool_end:ok model_end:text",
    ),
    "prepared and authorised": (
        w.GATED,
        "start model_end:sync2 tool_end:ok tool_end:ok tool_end:ok tool_end:ok tool_end:ok tool_end:ok "
        "model_end:sync tool_end:refuse model_end:sync tool_end:ok tool_end:refuse model_end:text",
    ),
    "gated job": (
        w.GATED,
        "start model_end:async tool_end:ok tool_end:ok model_end:async tool_end:refuse model_end:text",
    ),
    "cancel in preparation": (w.GATED, "start model_end:sync2 cancel tool_late:return"),
    "cancel in authorisation": (w.GATED, "start model_end:sync2 tool_end:ok cancel tool_late:return"),
    "tool panics": (w.TWO, "start model_end:sync2 tool_end:panic tool_late:return model_late:text"),
    "job panics": (w.JOBS, "start model_end:async2 tool_end:panic tool_item:progress tool_end:ok model_end:text"),
    "job panics while all wait for it": (
        w.JOBS,
        "start model_end:mixed tool_item:ask tool_item:progress tool_end:panic tool_end:ok model_end:text",
    ),
    "odd markers": (w.TWO, "start model_end:unmarked tool_end:ok tool_end:ok tool_end:ok model_end:text"),
    "start a tool": (w.TWO, "start_tool:0 tool_item:progress tool_end:ok"),
    "start a tool that is not there": (
        w.TWO,
        "start_tool:3 model_end:text start_tool:1 tool_item:progress cancel tool_late:return",
    ),
    "limit with jobs": (w.JOBS, "start model_end:async2 model_end:async tool_late:return"),
    "limit with sync": (w.JOBS, "start model_end:sync tool_end:ok model_end:sync steer tool_end:ok"),
    "job ends in the stream": (
        w.JOBS,
        "start model_end:async model_item:delta tool_end:ok model_item:delta model_end:streamed",
    ),
    "job ends in the batch": (
        w.JOBS,
        "start model_end:sandwich tool_item:0:progress tool_end:1:ok tool_end:ok tool_end:ok model_end:text",
    ),
    "job outlives the answer": (w.JOBS, "start model_end:async model_end:text tool_item:progress tool_end:ok"),
    "jobs end in one race": (w.JOBS, "start model_end:async2 together tool_end:ok tool_end:1:fail model_end:text"),
    "job that may finish": (w.SLOW, "start model_end:mixed cancel tool_end:ok advance:due tool_late:return"),
    "job that does not finish": (w.SLOW, "start model_end:async cancel advance:before advance:due tool_late:return"),
    "job and cancel in a race": (w.SLOW, "start model_end:async together tool_end:ok cancel tool_late:return"),
    "deaf job": (
        w.DEAF,
        "start model_end:mixed tool_end:ok tool_item:progress cancel tool_late:progress start model_end:async "
        "cancel tool_late:return",
    ),
    "job panics after the cancel": (
        w.SLOW,
        "start model_end:async cancel tool_item:ask tool_end:panic tool_late:return",
    ),
    "job is heard while another is prepared": (
        w.SPAWN,
        "start model_end:async2 tool_item:progress tool_item:ask tool_end:1:refuse tool_end:panic model_end:text",
    ),
    "job panics while another is prepared": (
        w.SPAWN,
        "start model_end:async2 tool_end:panic tool_end:ok model_end:text",
    ),
    "job ends while a response is announced": (
        w.TIGHT,
        "start model_end:async hold model_end:text tool_end:ok read_all",
    ),
    "job panics while a response is announced": (
        w.TIGHT,
        "start model_end:async hold model_end:text tool_end:panic read_all",
    ),
    "job ends while calls are proposed": (
        w.TIGHT,
        "start model_end:async hold model_end:sync read tool_end:ok read_all",
    ),
    "job panics while calls are proposed": (
        w.TIGHT,
        "start model_end:async hold model_end:sync read tool_end:panic read_all",
    ),
    "job ends before its step begins": (w.TIGHT, "start hold model_end:async read:2 read:1 tool_end:ok read_all"),
    "job panics before its step begins": (
        w.TIGHT,
        "start hold model_end:async read:2 read:1 tool_end:panic read_all",
    ),
    "cancel while a job's end is sent, the other returns": (
        w.TIGHT_SLOW,
        "start model_end:async2 hold model_item:delta tool_end:ok cancel tool_end:ok read_all",
    ),
    "cancel while a job's end is sent, the other panics": (
        w.TIGHT_SLOW,
        "start model_end:async2 hold model_item:delta tool_end:ok cancel tool_end:panic read_all",
    ),
    "cancel while a job's end is sent, the time runs out": (
        w.TIGHT_SLOW,
        "start model_end:async2 hold model_item:delta tool_end:ok cancel advance:due read_all",
    ),
    "hints short, absent and as a date": (
        w.TWO,
        "start model_end:retry advance:due model_end:short_hint advance:before advance:due model_end:short_hint "
        "advance:before advance:due model_end:text start model_end:date advance:before advance:due model_end:no_hint "
        "advance:before advance:due model_end:text",
    ),
    "malformed between failures": (
        w.TWO,
        "start model_end:empty model_end:retry advance:before advance:due model_end:retry advance:before advance:due "
        "model_end:text",
    ),
    "a long text is cut short": (w.TWO, "start flood model_item:summary flood cancel start flood model_end:permanent"),
    "jobs end out of order": (
        w.CLOSE,
        "start model_end:async2 tool_end:1:ok tool_end:ok model_end:async2 tool_end:1:fail tool_end:ok model_end:text",
    ),
    "jobs end out of order before a batch": (
        w.CLOSE,
        "start model_end:async2 model_end:sync tool_end:1:ok tool_end:ok tool_end:ok compactor:ok model_end:text",
    ),
}
