"""Device wrappers and functions of the preludes on the GPU, against what the emulator gave.

Loads the images that wrapper_results.c made through the driver's own interface (ctypes) and runs
each kernel on the inputs of wrappers.bin. Results have the same bits, but for NaN, or lie within the
ulps that wrappers.json names.

    wrappers.py FOLDER

Run as a program, which check_gpu.py does, so that a kernel that goes wrong ends only this: prints
one line of JSON. On the stand-in driver FOLDER.kernels names the libraries with the kernels.
"""

import ctypes
import json
import math
import os
import struct
import sys

from work import Failed

FORMATS = {"f32": "f", "f64": "d", "i32": "i", "u32": "I", "i64": "q", "u8": "B", "i8": "b",
           "u16": "H", "bool": "B"}
NON_BLOCKING, END, POINTER, SIZE = 1, 0, 1, 2  # the driver's numbers
PINNED = 1 << 20  # bytes; no buffer has more
SHOWN = 5  # failures in full words


class Driver:
    """The few calls of the driver that are needed; each one is checked."""

    def __init__(self):
        name = os.environ.get("MLTC_CUDA_DRIVER", "libcuda.so.1")
        try:
            self.driver = ctypes.CDLL(name)
        except OSError as e:
            raise Failed(f"the driver cannot be opened: {e}") from e
        self("cuInit", ctypes.c_uint(0))
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)
        self.stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(NON_BLOCKING))
        self.pinned = ctypes.c_void_p()
        self("cuMemHostAlloc", ctypes.byref(self.pinned), ctypes.c_size_t(PINNED), ctypes.c_uint(0))

    def result(self, call, *arguments):
        return getattr(self.driver, call)(*arguments)

    def __call__(self, call, *arguments):
        code = self.result(call, *arguments)
        if code:
            text = ctypes.c_char_p()
            self.result("cuGetErrorName", code, ctypes.byref(text))
            raise Failed(f"{call} failed: {(text.value or b'?').decode()} ({code})")

    def load(self, folder, images):
        """The first image that the device takes: they are listed best first."""
        words = []
        for name in images:
            with open(os.path.join(folder, name), "rb") as f:
                image = f.read() + b"\0"
            module = ctypes.c_void_p()
            code = self.result("cuModuleLoadDataEx", ctypes.byref(module), image, ctypes.c_uint(0),
                               None, None)
            if code == 0:
                return module, name
            words.append(f"{name}: error {code}")
        raise Failed("no image suits the device: " + ", ".join(words))

    def function(self, module, name):
        f = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(f), module, name.encode())
        return f

    def take(self, size):
        at = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at

    def give_back(self, at):
        self("cuMemFree_v2", at)

    def send(self, at, data):
        ctypes.memmove(self.pinned, data, len(data))
        self("cuMemcpyHtoDAsync_v2", at, self.pinned, ctypes.c_size_t(len(data)), self.stream)
        self("cuStreamSynchronize", self.stream)

    def fetch(self, at, size):
        self("cuMemcpyDtoHAsync_v2", self.pinned, at, ctypes.c_size_t(size), self.stream)
        self("cuStreamSynchronize", self.stream)
        return ctypes.string_at(self.pinned, size)

    def launch(self, function, blocks, threads, shared, addresses):
        """The one parameter of a kernel is its addresses by value."""
        parameter = (ctypes.c_uint64 * len(addresses))(*addresses)
        size = ctypes.c_size_t(ctypes.sizeof(parameter))
        extra = (ctypes.c_void_p * 5)(POINTER, ctypes.addressof(parameter), SIZE,
                                      ctypes.addressof(size), END)
        one = ctypes.c_uint(1)
        self("cuLaunchKernel", function, ctypes.c_uint(blocks), one, one, ctypes.c_uint(threads), one,
             one, ctypes.c_uint(shared), self.stream, None, extra)
        self("cuStreamSynchronize", self.stream)


# --- comparing

def order(value, bits):
    """Neighbouring floats become neighbouring whole numbers; both zeros are 0."""
    integer = struct.unpack("<q" if bits == 64 else "<i", struct.pack("<d" if bits == 64 else "<f", value))[0]
    return integer if integer >= 0 else -(integer & ((1 << (bits - 1)) - 1))


def distance(x, y, bits):
    """In ulps; 0 for NaN and NaN."""
    if math.isnan(x) or math.isnan(y):
        return 0 if math.isnan(x) and math.isnan(y) else math.inf
    return abs(order(x, bits) - order(y, bits))


def values(data, form):
    count = len(data) // struct.calcsize("<" + form)
    return struct.unpack(f"<{count}{form}", data)


def compare(got, want, case):
    """Words about the first element that is wrong, and the largest distance."""
    if got == want:
        return None, 0
    form, ulps, worst = FORMATS[case["type"]], case["ulps"], 0
    size = struct.calcsize(form)
    for i, (x, y) in enumerate(zip(values(got, form), values(want, form))):
        same = got[i * size:(i + 1) * size] == want[i * size:(i + 1) * size]
        if same:
            continue
        apart = distance(x, y, size * 8) if form in "fd" else math.inf
        worst = max(worst, apart)
        if apart > ulps or (ulps == 0 and not math.isnan(x)):
            bits = got[i * size:(i + 1) * size][::-1].hex(), want[i * size:(i + 1) * size][::-1].hex()
            return f"element {i} is {x!r} (0x{bits[0]}), not {y!r} (0x{bits[1]})", worst
    return None, worst


# --- running

def run_case(driver, function, case, data):
    inputs = [case[f"in{i}"] for i in range(3) if f"in{i}" in case]
    buffers = [data[at:at + size] for at, size in inputs + [case["before"]]]
    taken = []
    try:
        for content in buffers:
            taken.append(driver.take(len(content)))
            driver.send(taken[-1], content)
        driver.launch(function, case["blocks"], case["threads"], case["shared"], [t.value for t in taken])
        at, size = case["after"]
        return compare(driver.fetch(taken[-1], size), data[at:at + size], case)
    finally:
        for t in taken:
            driver.give_back(t)


def label(case, rows):
    words = case["kernel"].split("_")
    if words[0] == "row":
        return f"{rows[int(words[1])]} of {words[2]}"
    return case["kernel"]


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "wrappers.json"), encoding="utf-8") as f:
        plan = json.load(f)
    with open(os.path.join(folder, "wrappers.bin"), "rb") as f:
        data = f.read()
    driver = Driver()
    modules = {u: driver.load(folder, images) for u, images in plan["units"].items()}
    failures, worst = [], {}
    for case in plan["cases"]:
        function = driver.function(modules[case["unit"]][0], case["kernel"])
        words, apart = run_case(driver, function, case, data)
        name = label(case, plan["rows"])
        if words:
            failures.append(f"{name}: {words}")
        elif case["ulps"]:
            worst[name] = {"ulps": apart, "allowed": case["ulps"]}
    images = sorted({name for _, name in modules.values()})
    print(json.dumps({"cases": len(plan["cases"]), "failures": failures, "functions": worst,
                      "images": images}))


# --- the step of check_gpu.py

def check(folder, clock, run):
    env = dict(os.environ, CUDA_MODULE_LOADING="EAGER")  # an image that does not fit is refused at once
    kernels = os.path.join(folder, "wrappers.kernels")
    if os.path.exists(kernels):
        with open(kernels, encoding="utf-8") as f:
            env["MLTC_STANDIN_KERNELS"] = f.read().strip()
    out = run([sys.executable, os.path.abspath(__file__), os.path.join(folder, "wrappers")],
              "wrappers", clock, env=env)
    result = json.loads(out.strip().splitlines()[-1])
    failures = result["failures"]
    if failures:
        more = f"\nand {len(failures) - SHOWN} more" if len(failures) > SHOWN else ""
        raise Failed(f"{len(failures)} of {result['cases']} differ from the emulator:\n" +
                     "\n".join(failures[:SHOWN]) + more)
    return result


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"wrappers: {failure}")
