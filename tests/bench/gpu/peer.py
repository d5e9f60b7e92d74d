"""The talk between speed.py and a peer: a line of JSON when it is ready, and one for each "measure".

A peer is run as `peer_X.py STYLE NETWORK`, NETWORK being JSON. $MLTC_PEER_DEVICE=cpu tries one
without a GPU.
"""

import json
import os
import sys
import time

SECONDS = 0.5  # of one measurement, about
WANT_CPU = os.environ.get("MLTC_PEER_DEVICE") == "cpu"


def say(**facts):
    print(json.dumps(facts), flush=True)


def absent(why):
    say(absent=why)
    sys.exit(0)


def arguments():
    return sys.argv[1], json.loads(sys.argv[2])


def seconds_of(step, wait, count):
    begun = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - begun) / count


def timer(step, wait):
    """After warming up: a function that gives the mean time of a step in microseconds."""
    for _ in range(3):
        step()
    wait()
    count = max(3, min(10000, int(SECONDS / max(seconds_of(step, wait, 3), 1e-6))))
    return lambda: 1e6 * seconds_of(step, wait, count)


def serve(version, measure):
    say(version=version)
    for _ in sys.stdin:
        say(**measure())
