"""A peer that is not on the machine."""

import json

print(json.dumps({"absent": "JAX: pretended to be missing"}), flush=True)
