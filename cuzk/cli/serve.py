"""`cuzk serve`: the proving service that Curio's client calls, and HTTP for everybody else.

    cuzk serve --listen 127.0.0.1:9820 --params DIR --http 127.0.0.1:9821
    cuzk serve --config cuzk.toml

Jobs are written down before they are answered for: a killed service takes them up again. SIGTERM drains: nothing new is taken,
what runs is finished (--drain), what waits is left for the next service.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.service.config import Settings
    from cuzk.service.run import Server


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("serve", help="the proving service", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("-c", "--config", metavar="FILE", help="cuzk.toml (default: /data/zk/cuzk.toml, if there)")
    parser.add_argument("-l", "--listen", metavar="ADDRESS", help="gRPC: IP:port or unix://PATH "
                        "(default: unix:///run/curio/cuzk.sock)")  # fmt: skip
    parser.add_argument("--http", metavar="ADDRESS", help="HTTP: IP:port or unix://PATH (default: none)")
    parser.add_argument("--params", metavar="DIR", help="folder of Filecoin's parameter files (default: srs.param_cache, "
                        "$FIL_PROOFS_PARAMETER_CACHE, /var/tmp/filecoin-proof-parameters)")  # fmt: skip
    parser.add_argument("--state", metavar="DIR", help="where jobs are written down (default: below ~/.local/state/cuzk/serve)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what proves (default: cpu)")
    parser.add_argument("--ray", metavar="ADDRESS", help="prove on the hosts of a Ray cluster (each has cuzk and the keys); "
                        "'local': one on this machine")  # fmt: skip
    parser.add_argument("--scenario", metavar="FILE", help="machine, policy and pipeline (default: this machine's)")
    parser.add_argument("--calibration", metavar="FILE", help="costs of this machine, for forecasts (default: those of the "
                        "first jobs; $CUZK_CALIBRATION or ~/.config/cuzk/calibration.yaml, if there)")  # fmt: skip
    parser.add_argument("--ram", type=_size, metavar="SIZE", help="budget of proofs and keys (default: what is free, less 5 GiB)")
    parser.add_argument("--keys", type=_size, metavar="SIZE", help="budget of keys alone (default: that of --ram)")
    parser.add_argument("--threads", type=_count, metavar="N", help="threads a step (default: all cores)")
    parser.add_argument("--token-file", metavar="FILE", help="requests must bring the token in it; needed beyond this host")
    parser.add_argument("--no-token", action="store_true", help="listen beyond this host without one")
    parser.add_argument("--max-message", type=_size, default=256 << 20, metavar="SIZE", help="of a request (default: 256MiB)")
    parser.add_argument("--max-jobs", type=_count, default=256, metavar="N", help="open jobs at most (default: 256)")
    parser.add_argument("--job-timeout", type=_seconds, metavar="SECONDS", help="deadline of jobs that bring none")
    parser.add_argument("--drain", type=_seconds, default=60.0, metavar="SECONDS", help="for what runs at SIGTERM (default: 60)")
    parser.add_argument("--log-level", metavar="LEVEL", help="error, warn, info, debug (default: info)")


def _size(text: str) -> int:
    from cuzk.model.units import parse_bytes

    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size == 0:
        raise argparse.ArgumentTypeError("a size of nothing")
    return size


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 20):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"must be seconds up to a week, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    try:
        import aiohttp  # noqa: F401
        import grpc  # noqa: F401

        from cuzk.service.run import access_of, serve, set_up_logging
    except ImportError as error:
        raise InputError(f"the service needs the extra 'serve' (pip install 'cuzk[serve]'): {error}") from error
    settings = _settings(args)
    for note in settings.notes:
        print(f"cuzk: {note}", file=sys.stderr)
    token = _token(args.token_file) if args.token_file else None
    access = access_of(settings, token, args.no_token, args.max_message)
    set_up_logging(settings.log_level)
    print(f"cuzk: keys from {settings.params} ({settings.params_from}); jobs in {settings.state}", file=sys.stderr)

    def said(server: Server) -> None:
        port = f" (port {server.port})" if server.port else ""
        web = f", HTTP on {access.http} (port {server.http_port})" if access.http else ""
        print(f"cuzk: serving gRPC on {access.listen}{port}{web}", file=sys.stderr, flush=True)
        server.service.live.timeline.enabled = True

    return serve(lambda: _server(args, settings, access), drain_s=args.drain, said=said)


def _server(args: argparse.Namespace, settings: Settings, access: Any) -> Server:
    from cuzk.model.scenario import load_scenario
    from cuzk.service.journal import Journal
    from cuzk.service.run import Server
    from cuzk.service.service import Limits
    from cuzk.service.standard import standard_prover

    scenario = load_scenario(args.scenario) if args.scenario else None
    prover, forecaster = standard_prover(
        settings, device=args.device, scenario=scenario, calibration=_calibration(args.calibration)
    )
    limits = Limits(request_bytes=args.max_message, jobs=args.max_jobs, job_timeout_s=args.job_timeout or None)
    return Server(prover, Journal(settings.state), access, limits=limits, forecaster=forecaster)


def _settings(args: argparse.Namespace) -> Settings:
    from dataclasses import replace

    from cuzk.service.config import default_state, read_settings

    found = read_settings(args.config)
    given = {"listen": args.listen, "http": args.http, "state": args.state, "ram_bytes": args.ram, "key_bytes": args.keys,
             "threads": args.threads, "log_level": args.log_level}  # fmt: skip
    found = replace(found, **{name: value for name, value in given.items() if value is not None})
    if args.params:
        found = replace(found, params=args.params, params_from="--params")
    return found if found.state else replace(found, state=default_state(found.listen, found.params))


def _token(path: str) -> str:
    from cuzk.errors import InputError

    try:
        with open(path, "rb") as file:
            raw = file.read(4097)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    text = raw.decode("ascii", "replace").strip()
    if not 16 <= len(text) <= 4096 or not text.isprintable() or " " in text or "\ufffd" in text:
        raise InputError(f"{path}: a token has 16 to 4096 printable ASCII characters and no blanks")
    return text


def _calibration(given: str | None) -> Any:
    from cuzk.model.calibration import Calibration
    from cuzk.model.scenario import load_part

    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    path = given or os.environ.get("CUZK_CALIBRATION") or os.path.join(config, "cuzk", "calibration.yaml")
    return load_part(path, "calibration", Calibration) if given or os.path.isfile(path) else None
