// device_cpu.c: a program on the host: its arena is one mapping, its functions run on the team.
//
// Runs are done when they return, and everything lies where the host reads and writes it: batches
// are made in the arena itself, and a range of it is one piece.
#include "runtime/device.h"
#include "runtime/error.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Tiles are a state of eight KiB that Linux saves for a process which has asked for it, on a processor that has it.
static void allow_amx(void) {
#if defined(__x86_64__) && defined(__linux__)
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; // ARCH_REQ_XCOMP_PERM
  if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0)
    return;
#endif
  mlrt_fail(MLRT_EXIT_DEVICE,
            "this program was compiled for processors with a matrix unit (AMX-BF16), and this one "
            "has none, or the "
            "system does not let programs use it\n"
            "help: compile the model on this machine, or with --target=cpu:x86-64-v3");
}

static void open_host(mlrt_device *d, const mlrt_options *o) {
  if (d->program->amx)
    allow_amx();
  d->times = mlrt_kernel_times_open(d->program, o->kernel_times);
}

// What the system has given is the plan, to the page.
static void allocate(mlrt_device *d, const mlrt_options *o) {
  mlrt_error e;
  if (!mlrt_arena_map(&d->arena, d->program->arena_bytes, !o->no_huge_pages, &e))
    mlrt_fail_with(&e);
  int64_t measured = mlrt_arena_measure(&d->arena);
  if (measured >= 0 && measured != d->arena.mapped)
    mlrt_fail(MLRT_EXIT_INTERNAL, "%lld bytes are mapped for a plan of %lld", (long long)measured,
              (long long)d->arena.bytes);
  d->staging = d->arena.base + d->program->state_bytes;
}

static void close_host(mlrt_device *d) {
  mlrt_kernel_times_close(d->times);
  if (!mlrt_arena_is_whole(&d->arena))
    mlrt_fail(MLRT_EXIT_INTERNAL, "bytes behind the plan's %lld were stored to",
              (long long)d->arena.bytes);
  mlrt_arena_unmap(&d->arena);
}

static void run(mlrt_device *d, int func, int slot, const mlrt_spare *beside) {
  mlrt_kernel_times_begin(d->times, d->team, func);
  mlrt_team_run_beside(d->team, d->program->funcs[func].run, d->arena.base, slot, beside);
  mlrt_kernel_times_end(d->times);
}

static void staged(mlrt_device *d) {
  (void)d;
}

static const char *result(mlrt_device *d, int slot, const mlrt_result *r) {
  (void)slot;
  return d->arena.base + r->offset;
}

static bool read_arena(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_take_fn take,
                       void *data) {
  return take(data, d->arena.base + offset, (size_t)bytes);
}

static bool write_arena(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_give_fn give,
                        void *data) {
  return give(data, d->arena.base + offset, (size_t)bytes);
}

static void fill(mlrt_device *d, int64_t offset, int64_t bytes, int byte) {
  memset(d->arena.base + offset, byte, (size_t)bytes);
}

static void run_tasks(const mlrt_kernel *k, int phase, int64_t begin, int64_t end,
                      char *const *args) {
  if (begin < end)
    k->phases[phase].fast(begin, end, args);
}

// Split 0: all tasks at once; 1: one by one, the last first; 2: three parts, the middle one last.
static void run_phase(const mlrt_kernel *k, int phase, char *const *args, int split) {
  int64_t n = k->phases[phase].tasks, a = n / 3, b = 2 * n / 3;
  switch (split) {
  case 0:
    run_tasks(k, phase, 0, n, args);
    break;
  case 1:
    for (int64_t i = n - 1; i >= 0; i--)
      run_tasks(k, phase, i, i + 1, args);
    break;
  default:
    run_tasks(k, phase, b, n, args);
    run_tasks(k, phase, 0, a, args);
    run_tasks(k, phase, a, b, args);
    break;
  }
}

static void call(mlrt_device *d, const mlrt_kernel *k, char *const *args, int split) {
  (void)d;
  for (int phase = 0; phase < k->num_phases; phase++)
    run_phase(k, phase, args, split);
}

static void print_code(const mlrt_program *p) {
  (void)p;
}

const mlrt_device_calls mlrt_cpu_calls = {
    .open = open_host,
    .allocate = allocate,
    .close = close_host,
    .run = run,
    .staged = staged,
    .result = result,
    .read = read_arena,
    .write = write_arena,
    .fill = fill,
    .call = call,
    .print_code = print_code,
};
