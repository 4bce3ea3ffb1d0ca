"""The child: `python -m rho_adapters.embedded.server` serves the model on a free port of 127.0.0.1.

Lines on standard output: `LOADING <file>`, then `READY <address>`. It lives as long as its standard input is open
and its parent is the process that started it; end of file, a new parent, SIGTERM and SIGINT all end it at once.

Standard input is watched rather than asking the kernel for a signal at the parent's death (PR_SET_PDEATHSIG):
that signal comes when the *thread* that started the child ends, and a thread pool ends its threads when it likes.
The parent's process id is looked at as well, for the case that a third process has inherited the other end.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from rho_adapters.embedded._protocol import KEY_VARIABLE, LOADING, READY
from rho_adapters.embedded.wheels import SERVER, check, model_path

TEMPLATE = Path(__file__).with_name("tools.jinja")
POLL_S = 0.5
"""How often the parent's process id is looked at."""


def serve(path: Path, context_tokens: int) -> Any:
    """Load the model and listen; the server, which works in threads of its own. Raises ModelMissing, RuntimeError."""
    llama = import_module(SERVER)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = context_tokens, 1  # one slot: the same request gets the same answer
    # Two threads spin while they wait for each other: 100 tokens/s on an idle machine, 2 on a busy one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    if key := os.environ.get(KEY_VARIABLE):
        params.api_keys = [key]
    params.warmup, params.verbosity, params.ui = False, 0, False
    params.use_jinja, params.chat_template = True, TEMPLATE.read_text("utf-8")
    return llama.Server(params)


def main(argv: list[str] | None = None) -> int:
    """Serve until there is no reason to."""
    options = _options(argv)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_DFL)  # nothing is to be saved: the system may end it even inside of C++
    parent = os.getppid()
    check()
    path = model_path()
    print(LOADING, path.name, flush=True)
    server = serve(path, options.context_tokens)
    print(READY, server.listening_address, flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed: nobody reads the pipe any more
    _until_forsaken(parent)
    os._exit(0)  # an orderly end would wait for answers that nobody wants


def _options(argv: list[str] | None) -> Namespace:
    parser = ArgumentParser(prog="rho_adapters.embedded.server", description="Serve the embedded model.")
    parser.add_argument("--context-tokens", type=int, default=4096)
    return parser.parse_args(argv)


def _until_forsaken(parent: int) -> None:
    """Until standard input ends or the parent is another one."""
    stdin = sys.stdin.fileno()
    while os.getppid() == parent:
        readable, _, _ = select.select([stdin], [], [], POLL_S)
        if readable and not os.read(stdin, 4096):
            return


if __name__ == "__main__":
    sys.exit(main())
