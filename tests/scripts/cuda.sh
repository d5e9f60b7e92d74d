#!/usr/bin/env bash
# scripts/check-gpu, rehearsed without a GPU: the examples' kernels run on the emulator, the driver is
# the stand-in (tests/standin). Losses are the CPU target's, bits are the same in every run and in
# every order of work that streams and events allow, and either target resumes from the other's file.
# Before that, each example trains with every access watched.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
need_data
command -v python3 >python.txt || skip "no python3"
driver=$build/lib/libcuda-standin.so
[ -e "$driver" ] || skip "no stand-in driver in this build"
export MLTC=$mltc MLTC_CUDA_TARGET=cuda:sm_80 XDG_CACHE_HOME=$PWD/cache PYTHONDONTWRITEBYTECODE=1
export MLTC_DATA=$data

SMALL=1 "$root/scripts/check-gpu" prepare "$PWD/programs" 2>err.txt || {
  grep -q NVRTC err.txt && skip "no NVRTC: $(head -n 1 err.txt)"
  cat err.txt
  fail "prepare"
}
[ "$(wc -l <programs/programs.txt)" = 3 ] || fail "not all examples are prepared"

# The kernels as libraries for the emulator; NAME.kernels names them for the stand-in.
while read -r name; do
  libs=
  for unit in programs/"$name"-kept/kernels_*.cu; do
    clang++ -std=c++17 -O1 -fno-threadsafe-statics -fno-exceptions -fno-rtti -fvisibility=hidden \
      -fno-math-errno -fno-trapping-math -w -shared -fPIC -I "$root/tests/emulator" \
      -x c++ "$unit" -o "${unit%.cu}.so" -lm
    libs=$libs:$PWD/${unit%.cu}.so
  done
  echo "${libs#:}" >programs/"$name".kernels
done <programs/programs.txt
export MLTC_CUDA_DRIVER=$driver

# Races, bounds, alignment, read-only buffers, shared memory that nobody wrote.
while read -r name; do
  MLTC_STANDIN_KERNELS=$(cat programs/"$name".kernels) programs/"$name"-gpu train --data-dir="$data" \
    --no-save --quiet >watched.txt 2>&1 || {
    cat watched.txt
    fail "$name, watched"
  }
done <programs/programs.txt

MLTC_STANDIN_FAST=1 MLTC_STANDIN_SEED=7 "$root/scripts/check-gpu" run "$PWD/programs" "$PWD/out.json" \
  >run.txt || {
  cat run.txt
  fail "check-gpu on the stand-in"
}
grep -q '15 of 15 passed' run.txt || fail "$(cat run.txt)"

# A failure is written down, and what comes after it is tried.
echo digits_mlp >programs/programs.txt
rm programs/digits_mlp-first-cpu
! MLTC_STANDIN_FAST=1 "$root/scripts/check-gpu" run "$PWD/programs" "$PWD/failed.json" >failed.txt ||
  fail "a failure, and exit code 0"
grep -q '4 of 5 passed' failed.txt || fail "$(cat failed.txt)"
grep -q '"failure": ".*digits_mlp-first-cpu' failed.json || fail "$(cat failed.json)"
