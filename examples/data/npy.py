"""Writes .npy files (NumPy's format, version 1.0) without NumPy."""
import struct

CODES = {"|u1": "B", "<i4": "i", "<f4": "f"}  # by NumPy's name of the type


def write_npy(path, dtype, shape, values):
    """`values`: all elements, the last dimension's side by side."""
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(values)}{CODES[dtype]}", *values))
