#!/usr/bin/env bash
# Which layer may include which (design: ir <- frontend, passes; passes <- codegen; runtime alone; the
# driver sees all but the runtime).
set -euo pipefail
failed=0

allow() { # LAYER ALLOWED...
  local layer=$1 line file included
  shift
  while IFS= read -r line; do
    file=${line%%:*}
    included=${line#*#include \"} included=${included%%/*}
    case " $layer $* " in
    *" $included "*) ;;
    *)
      echo "$file includes $included/: not allowed for $layer"
      failed=1
      ;;
    esac
  done < <(grep -Hn '^#include "[a-z]*/' "$layer" -r --include='*.c' --include='*.h')
}

allow ir
allow frontend ir
allow passes ir
allow codegen ir passes
allow driver ir frontend passes codegen
allow runtime
exit $failed
