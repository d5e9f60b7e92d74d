"""The processor that benchmarks run on: its name, and the file of its results."""

import os
import platform
import re

HERE = os.path.dirname(os.path.abspath(__file__))
AMD_ZEN_4 = "25"  # the family of Zen 3, too, which has no AVX-512
AMD_ZEN_1 = "23", 48  # computes AVX2 in halves; the family of Zen 2, too, whose models begin there
L3_SIZE = "/sys/devices/system/cpu/cpu0/cache/index3/size"
LARGE_L3_MB = 400  # more than any Xeon before Granite Rapids has; hypervisors give all of them one name


def large_l3(name):
    """Of a Xeon: a further part of its name where its last cache is larger than others'."""
    try:
        with open(L3_SIZE, encoding="utf-8") as f:
            mb = int(f.read().strip().rstrip("K")) // 1024
    except (OSError, ValueError):
        return ""
    return f", L3 of {mb} MB" if "Xeon" in name and mb >= LARGE_L3_MB else ""


def cpu_name(avx2=False):
    """With what sets machines of one name apart: they may not offer AVX-512, or compute its vectors in halves, or be of
    another generation. avx2: neither side uses it, though it is there."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            fields = [[part.strip() for part in line.split(":", 1)] for line in f if ":" in line]
        name = next(value for key, value in fields if key == "model name")
    except (OSError, StopIteration):
        return platform.machine()
    flags = next((value.split() for key, value in fields if key == "flags"), [])
    family = next((value for key, value in fields if key == "cpu family"), "")
    model = next((value for key, value in fields if key == "model"), "")
    if "avx2" in flags and "avx512f" not in flags:
        zen_1 = "AMD" in name and family == AMD_ZEN_1[0] and int(model or 0) < AMD_ZEN_1[1]
        return name + (", Zen 1" if zen_1 else ", AVX2")
    hidden = ", AVX-512 hidden" if avx2 else ""
    no_amx = ", no AMX" if "avx512_bf16" in flags and "amx_tile" not in flags and "Xeon" in name else ""
    zen_4 = ", Zen 4" if "AMD" in name and "avx512f" in flags and family == AMD_ZEN_4 else ""
    return name + zen_4 + no_amx + large_l3(name) + hidden


def result_path(bench, avx2=False):
    """One file for each kind of processor: what is fast beside PyTorch on one need not be on another."""
    name = re.sub(r"\(\w+\)", "", cpu_name(avx2)).lower()
    return os.path.join(HERE, "results", bench + "-" + "-".join(re.findall(r"\w+", name)) + ".json")
