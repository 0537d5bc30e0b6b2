"""Load for an HTTP server: ``wrk`` where it is installed, else a plain one of our own.

Either sends each body of a file once, as POST, over keep-alive connections, and counts the answers
with status 200. Run as a program, this module is our own load generator.

What lives here: sending and counting. What does not: what is sent.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

THREADS = 2
CONNECTIONS = 32
LIMIT_SECONDS = 120

# wrk runs for a fixed time; here each thread leaves a file when its bodies are through, and wrk is
# told to end when both have. The clock of Lua itself has whole seconds only.
_SCRIPT = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long us; } moment; int gettimeofday(moment *, void *);")
local function now()
  local moment = ffi.new("moment")
  ffi.C.gettimeofday(moment, nil)
  return tonumber(moment.s) + tonumber(moment.us) / 1e6
end
local threads = {}
function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end
function init(args)
  bodies = {}
  local index = 0
  for line in io.lines("%(file)s") do
    if index %% %(threads)d == number then table.insert(bodies, line) end
    index = index + 1
  end
  sent, answered, accepted = 0, 0, 0
  -- The last answers are not waited for: requests that follow would repeat the first ones.
  enough = #bodies - %(in_flight)d
  headers = {["Content-Type"] = "%(kind)s"}
end
function request()
  began = began or now()
  sent = sent + 1
  return wrk.format("POST", "%(path)s", headers, bodies[(sent - 1) %% #bodies + 1])
end
function response(status)
  if answered >= enough then return end
  answered = answered + 1
  if status == 200 then accepted = accepted + 1 end
  if answered == enough then
    ended = now()
    wrk.thread:stop()
    io.open("%(file)s." .. number, "w"):close()
  end
end
function done(summary, latency)
  local accepted, answered, began, ended = 0, 0, math.huge, 0
  for _, thread in ipairs(threads) do
    accepted = accepted + thread:get("accepted")
    answered = answered + thread:get("answered")
    began = math.min(began, thread:get("began"))
    ended = math.max(ended, thread:get("ended") or now())
  end
  print(string.format(
    'RESULT {"accepted": %%d, "answered": %%d, "seconds": %%f, "p50_ms": %%f, "p99_ms": %%f}',
    accepted, answered, ended - began,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True)
class Load:
    """What was measured."""

    accepted: int
    answered: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        """Accepted requests in a second."""
        return self.accepted / self.seconds


def tool() -> str:
    """What makes the load."""
    return "wrk" if shutil.which("wrk") else "own load generator"


def post_all(port: int, path: str, bodies: list[bytes], content_type: str) -> Load:
    """Send every body once; none may have a line break in it."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "bodies"
        file.write_bytes(b"\n".join(bodies) + b"\n")
        if shutil.which("wrk") is None:
            own = [sys.executable, __file__, str(port), path, str(file), content_type]
            return Load(**json.loads(subprocess.check_output(own)))
        script = Path(directory) / "load.lua"
        values = {"file": file, "path": path, "kind": content_type, "threads": THREADS}
        values["in_flight"] = CONNECTIONS // THREADS
        script.write_text(_SCRIPT % values)
        command = ["wrk", "-t", str(THREADS), "-c", str(CONNECTIONS), "-d", str(LIMIT_SECONDS)]
        command += ["--timeout", "30", "-s", str(script), f"http://127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None and len(list(Path(directory).iterdir())) < THREADS + 2:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate()
    result = next(line for line in output.splitlines() if line.startswith("RESULT "))
    return Load(**json.loads(result.removeprefix("RESULT ")))


def get_for(port: int, path: str, seconds: float) -> tuple[int, int, float]:
    """Ask for a path over and over: answers with status 200, others, and the seconds it took."""
    if shutil.which("wrk") is None:
        return asyncio.run(_ask_for(port, path, seconds))
    script = 'function done(s) print("RESULT", s.requests, s.errors.status, s.duration / 1e6) end'
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "load.lua"
        file.write_text(script)
        # wrk counts whole seconds.
        command = ["wrk", "-t", str(THREADS), "-c", str(CONNECTIONS), "-s", str(file)]
        command += ["-d", str(max(1, round(seconds))), "--timeout", "30"]
        output = subprocess.check_output([*command, f"http://127.0.0.1:{port}{path}"], text=True)
    result = next(line for line in output.splitlines() if line.startswith("RESULT"))
    _, requests, errors, elapsed = result.split()
    return int(requests) - int(errors), int(errors), float(elapsed)


async def _ask_for(port: int, path: str, seconds: float) -> tuple[int, int, float]:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    started = time.perf_counter()

    async def one() -> tuple[int, int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = good = 0
        while time.perf_counter() - started < seconds:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            await reader.readexactly(length)
            count += 1
            good += head.startswith(b"HTTP/1.1 200")
        writer.close()
        return count, good

    counts = await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    good = sum(item[1] for item in counts)
    return good, sum(item[0] for item in counts) - good, time.perf_counter() - started


async def _connection(port: int, requests: list[bytes], times: list[float]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    accepted = 0
    while requests:
        started = time.perf_counter()
        writer.write(requests.pop())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - started)
        accepted += head.startswith(b"HTTP/1.1 200")
    writer.close()
    return accepted


async def _own(port: int, path: str, bodies: list[bytes], content_type: str) -> Load:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {content_type}\r\n"
    requests = [
        head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
        for body in reversed(bodies)
    ]
    times: list[float] = []
    started = time.perf_counter()
    counts = await asyncio.gather(*(_connection(port, requests, times) for _ in range(CONNECTIONS)))
    seconds = time.perf_counter() - started
    times.sort()
    p50, p99 = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
    return Load(sum(counts), len(times), seconds, p50, p99)


if __name__ == "__main__":
    number, route, name, kind = sys.argv[1:]
    found = asyncio.run(_own(int(number), route, Path(name).read_bytes().splitlines(), kind))
    print(json.dumps(asdict(found)))
