"""Compiling graphs and running the trainers that come out."""

import json
import os
import subprocess
import time


class Trainer:
    def __init__(self, mltc, graph, folder, *defines):
        self.folder = folder
        self.path = os.path.join(folder, os.path.basename(graph).rsplit(".", 1)[0])
        begun = time.perf_counter()
        subprocess.run([mltc, graph, "--no-cache", "-o", self.path, *defines], check=True)
        self.compile_seconds = time.perf_counter() - begun

    def run(self, data_dir, threads, *arguments):
        """Wall time of the whole process, and its metrics."""
        metrics = self.path + ".jsonl"
        command = [self.path, "--quiet", f"--metrics={metrics}", f"--threads={threads}",
                   f"--data-dir={data_dir}", *arguments]
        begun = time.perf_counter()
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begun
        with open(metrics, encoding="utf-8") as f:
            return seconds, [json.loads(line) for line in f]

    def step_seconds(self, data_dir, threads, steps, warm):
        """Mean time of a step between the log lines of step `warm` and of step `steps`."""
        _, lines = self.run(data_dir, threads, f"--steps={steps}", f"--log-every={warm}", "--no-save")
        at = {line["step"]: line["time"] for line in lines if "eval" not in line}
        return (at[steps] - at[warm]) / (steps - warm)
