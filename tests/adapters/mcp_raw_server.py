"""A badly behaved MCP server on stdio, without the SDK: `python mcp_raw_server.py MODE`.

Modes: `silent` answers nothing; `exits` ends at once; `deaf` works, but goes on when its input ends and ignores
SIGTERM; `tools` works. Its tools are at the end.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from typing import Any

Message = dict[str, Any]

held: list[Any] = []


def send(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> Message | None:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def note(port: int, line: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
        peer.sendall(line.encode() + b"\n")


def text(words: str) -> Message:
    return {"content": [{"type": "text", "text": words}]}


FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Ok?", "requestedSchema": FORM}}


def same_state(params: Message, journal: int) -> Message:
    """Comes back with the same state whatever is answered; every answer is a side effect."""
    if "inputResponses" in params:
        note(journal, "answered")
    return {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "requestState": "state-1"}


def polling(params: Message) -> Message:
    """Comes back twice with a state and no question."""
    turn = int(params.get("requestState", "0"))
    if turn == 2:
        return {**text("polled"), "resultType": "complete"}
    return {"resultType": "input_required", "requestState": str(turn + 1)}


def nested(params: Message) -> Message:
    """Asks for what no question can stand for."""
    schema = {"type": "object", "properties": {"a": {"type": "object"}}}
    ask = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": schema}}
    return {"resultType": "input_required", "inputRequests": {"q": ask}, "requestState": "nested"}


def flood(params: Message, count: int) -> Message:
    """Much progress, all of it before the answer."""
    token = params["_meta"]["progressToken"]
    for i in range(count):
        note_ = {"progressToken": token, "progress": i + 1, "total": count, "message": f"step {i + 1}"}
        send({"method": "notifications/progress", "params": note_})
    return text("flooded")


def hold(request: Message, journal: int) -> None:
    """Is answered when `asks` has asked."""
    held.append(request["id"])
    note(journal, "held")


def asks(request: Message) -> None:
    """Asks live, then answers what is held, and at last itself with what was answered."""
    send({"id": "ask-1", "method": "elicitation/create", "params": QUESTION["params"]})
    for id in held:
        send({"id": id, "result": text("let go")})
    while (message := read()) is not None:
        if message.get("id") == "ask-1":
            send({"id": request["id"], "result": text(json.dumps(message.get("result") or message.get("error")))})
            return


def regrets(request: Message) -> None:
    """Asks live, and is answered by `let_go`."""
    send({"id": "ask-2", "method": "elicitation/create", "params": QUESTION["params"]})
    held.append(request["id"])


def withdraw() -> Message:
    """Takes the question of `regrets` back."""
    send({"method": "notifications/cancelled", "params": {"requestId": "ask-2"}})
    return text("withdrawn")


def let_go() -> Message:
    for id in held:
        send({"id": id, "result": text("let go")})
    return text("done")


def close() -> None:
    """Ends the output alone, and is slow to follow."""
    os.close(1)
    while read() is not None:
        pass
    time.sleep(0.5)
    os._exit(0)


def call(request: Message) -> None:
    params = request["params"]
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "same_state":
            result = same_state(params, arguments["journal"])
        case "polling":
            result = polling(params)
        case "nested":
            result = nested(params)
        case "flood":
            result = flood(params, arguments["count"])
        case "rubbish":
            sys.stdout.write("this is not JSON\n")
            result = {"content": "nor is this a result"}
        case "asks":
            return asks(request)
        case "hold":
            return hold(request, arguments["journal"])
        case "regrets":
            return regrets(request)
        case "withdraw":
            result = withdraw()
        case "let_go":
            result = let_go()
        case "close":
            return close()
        case "die":
            os._exit(3)
        case "pid":
            result = text(str(os.getpid()))
        case other:
            raise SystemExit(f"no tool {other}")
    result.setdefault("resultType", "complete")
    send({"id": request["id"], "result": result})


NAMES = "same_state polling nested flood rubbish asks hold regrets withdraw let_go close die pid"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES.split()]
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def answer(request: Message) -> None:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "raw", "version": "1"}
            send({"id": request["id"], "result": {"protocolVersion": version, "capabilities": {}, "serverInfo": info}})
        case "tools/list":
            send({"id": request["id"], "result": {"tools": TOOLS, **CACHE}})
        case "tools/call":
            call(request)
        case _ if "id" in request:
            send({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})


def main(mode: str) -> None:
    sys.stderr.write(f"pid {os.getpid()}\n")
    sys.stderr.flush()
    if mode == "exits":
        sys.stderr.write("no configuration\n")
        return
    if mode == "deaf":  # before anything is answered
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while (request := read()) is not None:
        if mode != "silent":
            answer(request)
    while mode == "deaf":
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
