# Sourced by the scripts here, which ctest calls with: MLTC_BINARY BUILD_DIR, from the source root.
# Gives them $mltc, $build, $root, $data (../shared/data) and the scratch folder that they work in.
set -euo pipefail
export LC_ALL=C
export mltc=$1
export build=$2
export root=$PWD
export data=$root/../shared/data
export MLTC_VERIFY_EACH=1 # what one pass breaks another must not mend
export XDG_CACHE_HOME=${MLTC_TEST_CACHE:-$build/cache} # what one test has compiled another need not
# Called dozens of times: past scripts that choose between versions, and without looking for packages that are
# installed, which takes longer than what the scripts here do.
interpreter=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null || true)
if [ -n "$interpreter" ]; then
  python3() { "$interpreter" -S "$@"; }
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

need_data() {
  [ -d "$data" ] || skip "no ../shared/data"
}

# Sanitizers change sizes, times and memory, and make compiling slow: what measures those, or compiles
# many programs, is for other builds.
need_plain_build() {
  [ -z "${MLTC_SANITIZED:-}" ] || skip "this build has sanitizers"
}

same() { # FILE FILE WHAT
  cmp "$1" "$2" || fail "$3 differ"
}

# Runs a command that must end with code $1, say exactly one error, and name it as $2 (a regular
# expression). Its streams are in out.txt and err.txt.
expect_error() { # CODE PATTERN COMMAND...
  local want=$1 pattern=$2 code=0 errors
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  if [ "$code" -ne "$want" ]; then
    cat err.txt
    fail "exit code $code, not $want: $*"
  fi
  errors=$(grep -cE '(^|: )error(\[|:)|^mltc(-pack)?: ' err.txt || true)
  if [ "$errors" -ne 1 ] || ! grep -qE -- "$pattern" err.txt; then
    cat err.txt
    fail "not one error with '$pattern': $*"
  fi
}
