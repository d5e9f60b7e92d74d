// test_arena.c: the arena is the plan's bytes, as the system counts them, and what leaves it is seen.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/arena.h"
#include "tests/support_check.h"

static void test_size(int64_t bytes, bool huge_pages) {
  mlrt_arena a;
  mlrt_error e;
  int64_t page = sysconf(_SC_PAGESIZE);
  CHECK(mlrt_arena_map(&a, bytes, huge_pages, &e), "%s", e.text);
  CHECK(a.bytes == bytes && a.mapped >= bytes && a.mapped % page == 0 &&
            a.mapped - bytes < 2 * page,
        "%lld bytes become %lld", (long long)bytes, (long long)a.mapped);
  CHECK(mlrt_arena_measure(&a) == a.mapped, "%lld bytes are mapped, not %lld",
        (long long)mlrt_arena_measure(&a), (long long)a.mapped);
  for (int64_t i = 0; i < bytes; i += 61)
    a.base[i] = 1;
  CHECK(mlrt_arena_is_whole(&a), "stores inside the plan are taken for others");
  if (a.mapped > bytes) {
    a.base[bytes]++;
    CHECK(!mlrt_arena_is_whole(&a), "a store behind the plan goes unseen");
  }
  mlrt_arena_unmap(&a);
}

// A process that stores there ends.
static void test_guard(int64_t at, const char *what) {
  mlrt_arena a;
  mlrt_error e;
  CHECK(mlrt_arena_map(&a, 100000, false, &e), "%s", e.text);
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGSEGV, SIG_DFL); // a sanitizer has its own
    ((volatile char *)a.base)[at < 0 ? at : a.mapped] = 1;
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "a store %s goes unseen", what);
  mlrt_arena_unmap(&a);
}

// More than any machine has.
static void test_no_room(void) {
  mlrt_arena a;
  mlrt_error e;
  CHECK(!mlrt_arena_map(&a, (int64_t)1 << 50, true, &e), "a petabyte is mapped");
  CHECK(e.exit_code == MLRT_EXIT_MEMORY && strstr(e.text, "this program needs 1125899906842624"),
        "exit %d: %s", e.exit_code, e.text);
}

int main(void) {
  test_size(64, true);
  test_size(4096, false);
  test_size(100032, false);
  test_size((5 << 20) + 64, true);
  test_guard(-1, "before the arena");
  test_guard(0, "behind the arena");
  test_no_room();
  printf("arena: %d failures\n", failures);
  return failures != 0;
}
