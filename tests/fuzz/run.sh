#!/usr/bin/env bash
# A fuzz test: run.sh HARNESS SEEDS OPTION...   The corpus is empty at first, and gone at the end; an input that
# crashes is kept in the folder that this is run in.
set -euo pipefail
harness=$1
seeds=$2
shift 2
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$harness" "$@" "$corpus" "$seeds"
