"""What the steps of check_gpu.py share: commands with limits, and a report that goes on, also with
several at a time."""

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor


class Failed(Exception):
    """What was tried has gone wrong: in these words."""


class TooSlow(Failed):
    """It was stopped at its limit."""


class Absent(Exception):
    """What is needed is not on this machine: nothing was tried."""


def absent(why):
    """A step that is not done."""
    raise Absent(why)


def ask_device(fields):
    """What nvidia-smi says of the GPU that programs see, as text; none: it is not there, as with the
    stand-in."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    try:
        out = subprocess.run(["nvidia-smi", "-i", first, "--query-gpu=" + ",".join(fields),
                              "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    answers = [x.strip() for x in out.splitlines()[0].split(",")] if out.strip() else []
    return answers if len(answers) == len(fields) else None


class Clock:
    """The time that is left of the whole run, or of a part of it; and what a command may take."""

    def __init__(self, seconds, command, whole=None):
        self.end = time.monotonic() + (min(seconds, whole.left()) if whole else seconds)
        self.command = command

    def left(self):
        return self.end - time.monotonic()

    def limit(self, seconds=None):
        """Of a command, or of something else that has its own: that, or what is left."""
        return max(1, min(self.command if seconds is None else seconds, self.left()))


def end_group(process):
    """The command and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def last_words(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


def ended_how(code):
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}"


def call(command, what, clock, cwd=None, env=None):
    """Exit code and output; Failed when it cannot be started or takes too long."""
    limit = clock.limit()
    try:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
    except OSError as e:
        raise Failed(f"{what}: cannot be started: {e}") from e
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as e:
        end_group(process)
        if clock.left() <= 0:
            raise Absent(f"no time left: stopped after {limit:.0f} s") from e
        raise TooSlow(f"{what}: not done after {limit:.0f} s") from e
    return process.returncode, out


def run(command, what, clock, cwd=None, env=None):
    """The command's output; Failed with its last words also when it fails."""
    code, out = call(command, what, clock, cwd, env)
    if code:
        raise Failed(f"{what}: {ended_how(code)}\n{last_words(out)}")
    return out


class Report:
    """One row for each step: passed is true, false, or null for what was not done. `after` is called
    after each one."""

    def __init__(self, clock, after=lambda: None):
        self.clock, self.after, self.rows, self.lock = clock, after, [], threading.Lock()

    def step(self, program, what, function, *arguments):
        row = {"program": program, "what": what, "passed": True}
        begun = time.monotonic()
        try:
            if self.clock.left() <= 0:
                raise Absent("no time left")
            row.update(function(*arguments) or {})
        except Absent as e:
            row.update(passed=None, not_done=str(e))
        except Exception as e:  # whatever it is: the next step may work
            kind = "" if isinstance(e, Failed) else type(e).__name__ + ": "
            row.update(passed=False, failure=kind + str(e))
        row["seconds"] = round(time.monotonic() - begun, 3)
        with self.lock:
            self.rows.append(row)
            self.show(row)
            self.after()
        return row

    def beside(self, tasks, jobs):
        """Tasks, so many at a time. A task is a list of arguments of step(), which follow each other.
        Whichever are done first, rows lie in the order of the tasks afterwards."""
        before = len(self.rows)
        with ThreadPoolExecutor(jobs) as pool:
            done = list(pool.map(lambda task: [self.step(*step) for step in task], tasks))
        self.rows[before:] = [row for rows in done for row in rows]

    def show(self, row):
        verdict = {True: "ok", False: "FAILED", None: "not done: "}[row["passed"]]
        print(f"{row['program']:14} {row['what']:36} {verdict}{row.get('not_done', '')}", flush=True)
        if row["passed"] is False:
            print("    " + row["failure"].replace("\n", "\n    "), flush=True)

    def count(self, passed):
        return sum(r["passed"] is passed for r in self.rows)
