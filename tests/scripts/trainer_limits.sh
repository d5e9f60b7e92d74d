#!/usr/bin/env bash
# What a trainer may take: 500 KB on disk when stripped; 20 ms until it speaks; memory within 10% + 4 MB
# of its plan and of the data bytes that it announces; an arena of the plan's bytes; and no memory from the
# system once it trains, evaluates, logs and saves. Prints a line per example with the figures.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
need_data

# Runs a command some times: prints its shortest CPU and wall times in ms and its largest memory in
# bytes. Other work on the machine makes a start look slower, never faster. In C, because the peak of
# a process counts what it inherits from the one that starts it, and an interpreter is large.
cat >measure.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double ms(struct timeval t) { return t.tv_sec * 1e3 + t.tv_usec * 1e-3; }

int main(int argc, char **argv) {
  (void)argc;
  double cpu = 1e9, wall = 1e9;
  long peak = 0;
  for (int i = 0; i < atoi(argv[1]); i++) {
    struct timespec begin, end;
    struct rusage used;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t pid = fork();
    if (pid == 0) {
      dup2(open("/dev/null", O_WRONLY), 1);
      execv(argv[2], argv + 2);
      _exit(127);
    }
    if (wait4(pid, &status, 0, &used) != pid || status != 0)
      return 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double took = (end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) * 1e-6;
    double work = ms(used.ru_utime) + ms(used.ru_stime);
    wall = took < wall ? took : wall;
    cpu = work < cpu ? work : cpu;
    peak = used.ru_maxrss > peak ? used.ru_maxrss : peak;
  }
  printf("%.1f %.1f %ld\n", cpu, wall, peak * 1024);
  return 0;
}
C
"${CC:-clang}" -O1 measure.c -o measure

check_size() { # NAME
  cp "$1" stripped
  strip stripped
  size=$(stat -c %s stripped)
  [ "$size" -le 500000 ] || fail "$1 has $size bytes stripped, more than 500 KB"
}

check_start() { # NAME COMMAND OPTION...
  local name=$1
  shift
  read -r cpu wall _ < <(./measure 9 "./$name" "$@")
  [ "${wall%.*}" -lt 20 ] || [ "${cpu%.*}" -lt 20 ] || fail "$name $1 takes $wall ms ($cpu ms of work)"
}

# The program's own words: "memory: N bytes", and per data set "N bytes beside the plan".
check_memory() { # NAME OPTION...
  local name=$1
  shift
  "./$name" "$@" >said.txt
  plan=$(sed -n 's/^memory: \([0-9]*\) bytes.*/\1/p' said.txt)
  beside=$(sed -n 's/.*, \([0-9]*\) bytes beside the plan.*/\1/p' said.txt | awk '{s += $1} END {print s + 0}')
  read -r _ _ peak < <(./measure 1 "./$name" "$@")
  limit=$(((plan + beside) * 11 / 10 + 4194304))
  [ "$peak" -le "$limit" ] ||
    fail "$name uses $peak bytes; its plan has $plan, its data $beside: the limit is $limit"
}

# One mapping has the plan's bytes, to the page. From before the first step on, until the run is done, no
# call asks the system for memory: not for steps, nor for logs, metrics, evaluations and checkpoints.
check_calls() { # NAME OPTION...
  local name=$1 page pages
  shift
  "$mltc" "$name.graph" --emit=plan.json -o plan.json
  page=$(getconf PAGESIZE)
  pages=$(python3 -c "import json; print(-(-json.load(open('plan.json'))['totals']['arena'] // $page) * $page)")
  strace -f -qq -e trace=mmap,munmap,mremap,brk,write -s 64 -o calls.txt "./$name" "$@" --log-every=1 \
    --metrics=metrics.jsonl --save=saved.safetensors --save-every=2 >/dev/null
  [ "$(grep -c "mmap(0x[0-9a-f]*, $pages, PROT_READ|PROT_WRITE, .*MAP_FIXED" calls.txt)" = 1 ] ||
    fail "$name does not map its plan's bytes, $pages"
  for event in 'write(1, "model: ' 'write(1, "step 1/' 'write(.*{\\"eval\\"' 'write(1, "done: '; do
    grep -q "$event" calls.txt || fail "$name: strace has not seen $event"
  done
  [ "$(grep -c '__metadata__' calls.txt)" -ge 2 ] || fail "$name: strace has seen no checkpoints"
  awk '/write\(1, "model: / {on = 1} /write\(1, "done: / {exit} on && /(mmap|munmap|mremap|brk)\(/' calls.txt >late.txt
  [ ! -s late.txt ] || fail "$name asks for memory while it trains: $(head -n 3 late.txt)"
}
if ! strace -qq -o calls.txt true 2>strace.txt; then
  echo "skipped: no strace that works: the check for late allocations"
  check_calls() { :; }
fi

limits() { # NAME OPTION... (of a short training run)
  local name=$1
  shift
  "$mltc" "$name.graph" -o "$name"
  check_size "$name"
  check_memory "$name" train --no-save --data-dir="$data" "$@"
  check_calls "$name" train --data-dir="$data" "$@"
  check_start "$name" info
  echo "$name: $size bytes, starts in $wall ms; plan $plan + data $beside, peak $peak bytes"
}

cp -r "$root/examples/data" "$root"/examples/*.graph .
sed -i 's/epochs = 10/epochs = 1/' mnist_mlp.graph # the data of mnist take their time to unpack
sed -i 's/range=90%..100%/range=99%..100%/' char_gpt.graph # hundreds of windows ask for what thousands do
limits digits_mlp --epochs=2
limits mnist_mlp
limits char_gpt --steps=4
# Tiles of few registers are many: they are measured, too, where this machine has the many of AVX-512.
if grep -q avx512f /proc/cpuinfo; then
  "$mltc" "$root/examples/char_gpt.graph" --target=cpu:x86-64-v3 -o char_gpt_v3
  check_size char_gpt_v3
fi
check_start digits_mlp train --epochs=0 --no-save
check_start char_gpt train --steps=0 --no-save --data-dir="$data"
