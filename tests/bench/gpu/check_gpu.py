#!/usr/bin/env python3
"""Runs prepared programs on a GPU and writes what came out; called by scripts/check-gpu.

    check_gpu.py FOLDER [--out FILE] [--limit SECONDS] [--command-limit SECONDS]
                 [--only NAME,...] [--parts PART,...] [--peers PEER,...] [--jobs N]

FOLDER is what prepare.py made. Everything is tried, whatever fails before; what is not timed, N programs
at a time; when the limit is reached no new work begins. The file has every outcome: failures with their
words, and what was not done and why. Exit code: 1 when anything failed.
"""

import argparse
import datetime
import glob
import json
import os
import re
import sys
import time

import examples
import sanitizer
import speed
import wrappers
from work import Clock, Report, absent, ask_device, run

LIMIT = 450  # seconds: together with starting and ending less than 8 minutes
COMMAND_LIMIT = 120
JOBS = 8
PARTS = ["correct", "sanitizer", "speed"]
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")


def hold_devices():
    """Files that keep the GPUs initialised while they are open. Without them, and without the
    persistence daemon, the driver starts a GPU anew for each program, which takes it seconds."""
    held = []
    for path in glob.glob("/dev/nvidia[0-9]*"):
        try:
            held.append(open(path, "rb", buffering=0))
        except OSError:
            pass # not ours to open: programs take longer, or will say what is wrong
    return held


def names(text, known, what):
    chosen = text.split(",") if text else known
    unknown = [x for x in chosen if x not in known]
    if unknown:
        sys.exit(f"check-gpu: there is no {what} {unknown[0]}: there are {', '.join(known)}")
    return chosen


def correct(folder, report, programs, wrappers_too, jobs):
    tasks = examples.tasks(programs)
    if wrappers_too:
        tasks.insert(0, [("wrappers", "wrappers against the emulator", wrappers.check, folder,
                          report.clock, run)])
    report.beside(tasks, jobs)


def try_all(folder, prepared, report, only, parts, peers, jobs):
    listed = [facts for facts in prepared["programs"] if facts["name"] in only]
    programs = [examples.Program(folder, facts, report.clock) for facts in listed
                if facts["kind"] != "missing"]
    try:
        for facts in listed:
            if facts["kind"] == "missing":
                report.step(facts["name"], "all of it", absent, facts["why"])
        if "correct" in parts:
            correct(folder, report, programs, "wrappers" in only, jobs)
        if "sanitizer" in parts:
            sanitizer.try_all(report, programs, jobs)
        return speed.try_all(report, programs, peers, prepared["small"]) if "speed" in parts else {}
    finally:
        for p in programs:
            p.close()


def write(path, result):
    """Whole, or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--out", help="result file; default: gpu-NAME.json among the results")
    p.add_argument("--limit", type=float, default=LIMIT, help="seconds after which nothing new begins")
    p.add_argument("--command-limit", type=float, default=COMMAND_LIMIT, help="seconds of one command")
    p.add_argument("--only", help="programs, and wrappers; default: all that there are")
    p.add_argument("--parts", help=f"of {','.join(PARTS)}; default: all")
    p.add_argument("--peers", help=f"of {','.join(speed.PEERS)}; default: all")
    p.add_argument("--jobs", type=int, default=min(JOBS, os.cpu_count() or 1),
                   help="programs at a time, while nothing is timed")
    o = p.parse_args()
    folder = os.path.abspath(o.folder)
    with open(os.path.join(folder, "programs.json"), encoding="utf-8") as f:
        prepared = json.load(f)
    known = [facts["name"] for facts in prepared["programs"]] + ["wrappers"] * prepared["wrappers"]
    only, parts = names(o.only, known, "program"), names(o.parts, PARTS, "part")
    peers = names(o.peers, list(speed.PEERS), "peer")
    name, driver = ask_device(["name", "driver_version"]) or ("unknown", "unknown")
    out = o.out or os.path.join(RESULTS, f"gpu-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}.json")
    begun, held = time.monotonic(), hold_devices()
    result = {"schema": "mltc-bench-gpu", "version": 2, "device": name, "driver": driver,
              "date": datetime.date.today().isoformat(), "target": prepared["target"], "peers": {}}

    def save():  # after each step: a run may be ended from outside
        write(out, {**result, "seconds": round(time.monotonic() - begun, 1), "rows": report.rows})

    report = Report(Clock(o.limit, o.command_limit), save)
    result["peers"] = try_all(folder, prepared, report, only, parts, peers, max(1, o.jobs))
    save()
    for device_file in held:
        device_file.close()
    failed, undone = report.count(False), report.count(None)
    print(f"{report.count(True)} of {len(report.rows)} passed, {failed} failed, {undone} not done; "
          f"written to {os.path.relpath(out)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
