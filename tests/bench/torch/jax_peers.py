"""One timed JAX run in a process of its own, as peers.py's of PyTorch: prints one line of JSON.

    jax_peers.py BENCHMARK --style STYLE --data DIR [--seed N] [--threads N]

Styles: "jit", a loop in Python around a jitted step that takes over the buffers of its state, and "scan", all steps in
one call. XLA has as many threads as there are processors that the process may use.
"""

import argparse
import json
import os


def use_threads(count):
    """Before JAX is imported, which counts them then."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("benchmark")
    p.add_argument("--style", choices=("jit", "scan"), default="jit")
    p.add_argument("--data", required=True)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=200)
    options = p.parse_args()
    use_threads(options.threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax_steps
    print(json.dumps({**jax_steps.run(options), "jax": jax.__version__}))


if __name__ == "__main__":
    main()
