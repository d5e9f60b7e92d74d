#!/usr/bin/env bash
# clang-format leaves every C file as it is (preludes are texts of their own); shellcheck has nothing to say about any script.
set -euo pipefail
failed=0
if command -v clang-format >/dev/null; then
  mapfile -t files < <(git ls-files '*.c' '*.h' | grep -v _prelude.h)
  clang-format --dry-run -Werror "${files[@]}" || failed=1
else
  echo "skipped: no clang-format"
fi
if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(git ls-files | while read -r f; do
    head -c 40 "$f" | grep -aq '^#!/usr/bin/env bash' && echo "$f"
  done)
  shellcheck "${scripts[@]}" || failed=1
else
  echo "skipped: no shellcheck"
fi
exit $failed
