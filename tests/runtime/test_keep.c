// test_keep.c: a save leaves the checkpoint of another run as NAME.old, also where calls fail or the program is killed
// between any two of them, with hard links and without.
#include "runtime/checkpoint.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/runtime/support_program.h"

static mlrt_program program;
static mlrt_options options;
static char *arena;
static mlrt_device memory; // the same

// --- the calls that give files their names, in the place of the library's

enum { KILLED = 9 };
static int calls, fail_at, die_at; // counted from 1; 0: none
static bool no_links;              // as on a file system that has none

static bool fails(void) {
  calls++;
  if (calls == die_at)
    _exit(KILLED);
  errno = EIO;
  return calls == fail_at;
}

int link(const char *from, const char *to) {
  if (fails())
    return -1;
  errno = EPERM;
  return no_links ? -1 : linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int rename(const char *from, const char *to) {
  return fails() ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path) {
  return fails() ? -1 : unlinkat(AT_FDCWD, path, 0);
}

int fsync(int fd) {
  return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

static void let_calls_be(void) {
  calls = fail_at = die_at = 0;
}

// --- runs: the states of each are those of its number

static bool save(mlrt_saver *s, int number) {
  unsigned seed = (unsigned)number;
  for (int i = 0; i < TOY_STATES; i++)
    arena[i] = (char)(seed = seed * 1103515245u + 12345u);
  mlrt_run_point at = {.step = number, .samples = TOY_TRAIN};
  mlrt_error e;
  return mlrt_saver_save(s, &memory, &at, &e);
}

static mlrt_saver opened(const char *path) {
  mlrt_saver s;
  mlrt_error e;
  CHECK(mlrt_saver_open(&s, &program, &options, path, &e), "%s", e.text);
  return s;
}

// A run that begins anew and saves once.
static mlrt_kept save_once(const char *path, int number) {
  mlrt_saver s = opened(path);
  CHECK(save(&s, number), "%s: not saved", path);
  mlrt_kept kept = s.kept;
  mlrt_saver_close(&s);
  return kept;
}

static bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

// Whether the file is whole, and the one of that run.
static bool is_of(const char *path, int number) {
  char name[32];
  snprintf(name, sizeof name, "only-%d", number);
  if (!is_there(name))
    save_once(name, number);
  return same_file(path, name);
}

static void begin(int number) {
  let_calls_be();
  unlink("c");
  unlink("c.old");
  save_once("c", number);
}

static void expect(const char *what, int now, int old) {
  CHECK(is_of("c", now), "%s: not the checkpoint of run %d", what, now);
  if (old)
    CHECK(is_of("c.old", old), "%s: not the earlier checkpoint of run %d", what, old);
  else
    CHECK(!is_there("c.old"), "%s: something is kept", what);
  CHECK(!is_there("c.tmp") && !is_there("c.old.tmp"), "%s: a temporary file is left", what);
}

// --- what is kept

static void test_new_runs(void) {
  begin(1);
  expect("a first run", 1, 0);
  mlrt_saver s = opened("c");
  expect("a run that has not saved", 1, 0);
  CHECK(save(&s, 2) && s.kept == MLRT_KEPT_EARLIER, "the first save keeps nothing");
  expect("a second run", 2, 1);
  CHECK(save(&s, 3) && s.kept == MLRT_KEPT_NOTHING, "the second save keeps something");
  expect("its second save", 3, 1);
  mlrt_saver_close(&s);
  CHECK(save_once("c", 4) == MLRT_KEPT_EARLIER, "a third run");
  expect("one is kept", 4, 3);
}

static mlrt_saver gone_on(const char *from, const char *path) {
  mlrt_checkpoint c;
  mlrt_error e;
  mlrt_saver s = opened(path);
  CHECK(mlrt_checkpoint_open(&c, &program, from, &e), "%s", e.text);
  mlrt_saver_go_on(&s, &c);
  mlrt_checkpoint_close(&c);
  return s;
}

static void test_resumed_runs(void) {
  begin(1);
  mlrt_saver s = gone_on("c", "c");
  CHECK(save(&s, 2) && save(&s, 3) && s.kept == MLRT_KEPT_NOTHING, "its own file");
  mlrt_saver_close(&s);
  expect("a resumed run", 3, 0);
  save_once("c", 4);
  s = gone_on("c.old", "c"); // back to the earlier one: what has taken its name is kept in turn
  CHECK(save(&s, 5) && s.kept == MLRT_KEPT_EARLIER && save(&s, 6), "not its own file");
  mlrt_saver_close(&s);
  expect("a run resumed from the earlier file", 6, 4);
}

static void test_alternating_runs(void) {
  begin(1);
  mlrt_saver a = opened("c"), b = opened("c");
  CHECK(save(&a, 2) && a.kept == MLRT_KEPT_EARLIER, "the first of the first");
  CHECK(save(&b, 3) && b.kept == MLRT_KEPT_EARLIER, "the first of the second");
  expect("two runs", 3, 2);
  CHECK(save(&a, 4) && a.kept == MLRT_KEPT_MEANWHILE, "the other's is not noticed");
  expect("the first again", 4, 3);
  CHECK(save(&a, 5) && a.kept == MLRT_KEPT_NOTHING, "its own is kept");
  mlrt_saver_close(&a);
  mlrt_saver_close(&b);
}

static void test_what_is_none(void) {
  begin(1);
  close(open("c", O_WRONLY | O_TRUNC)); // as mktemp leaves one
  CHECK(save_once("c", 2) == MLRT_KEPT_NOTHING, "an empty file");
  expect("an empty file", 2, 0);
  unlink("c");
  CHECK(save_once("c", 3) == MLRT_KEPT_NOTHING, "no file");
  symlink("c", "to-c");
  save_once("to-c", 4);
  expect("through a link", 4, 3);
  CHECK(!is_there("to-c.old"), "beside the link");
}

static void test_in_the_way(void) {
  begin(1);
  mlrt_saver s = opened("c"), other;
  mkdir("c.old", 0777);
  CHECK(!save(&s, 2), "a folder is replaced");
  CHECK(is_of("c", 1) && is_of("c.tmp", 2),
        "one of the two is gone"); // the newer one is for its user to move
  mlrt_error e = {.text = ""};
  CHECK(!mlrt_saver_open(&other, &program, &options, "c", &e) &&
            strstr(e.text, "'c.old' is in the way"),
        "found late: %s", e.text);
  options.resume = true; // has nothing to keep
  CHECK(mlrt_saver_open(&other, &program, &options, "c", &e), "%s", e.text);
  options.resume = false;
  mlrt_saver_close(&other);
  rmdir("c.old");
  mkfifo("c.old", 0666);
  CHECK(!save(&s, 2) && is_of("c", 1), "a pipe is replaced");
  unlink("c.old");
  CHECK(save(&s, 2) && s.kept == MLRT_KEPT_EARLIER, "not saved afterwards");
  mlrt_saver_close(&s);
  expect("free again", 2, 1);
}

// --- trouble

// Any call that names files or syncs them fails: the earlier file is there, and the next save goes well.
static void test_failing_calls(void) {
  for (int at = 1, last = 99; at <= last; at++) {
    begin(1);
    mlrt_saver s = opened("c");
    calls = 0;
    fail_at = at;
    bool saved = save(&s, 2);
    last = calls;
    let_calls_be();
    if (saved)
      CHECK(is_of("c", 2) && is_of("c.old", 1), "call %d fails, links %d", at, !no_links);
    else
      CHECK(is_of("c", 1) || (is_of("c", 2) && is_of("c.old", 1)), "call %d, links %d", at,
            !no_links);
    CHECK(save(&s, 3) && is_of("c.old", 1), "after call %d, links %d: lost", at, !no_links);
    mlrt_saver_close(&s);
    expect("after a failed call", 3, 1);
    if (at > 30)
      CHECK(false, "too many calls");
  }
}

// A checkpoint that cannot be written displaces nothing, not even what was kept before.
static void test_unsynced(void) {
  begin(1);
  save_once("c", 2);
  mlrt_saver s = opened("c");
  calls = 0;
  fail_at = 1;
  CHECK(!save(&s, 3), "saved though it is not on disk");
  let_calls_be();
  mlrt_saver_close(&s);
  expect("a save that fails", 2, 1);
}

static bool is_killed_in_save(int at) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    mlrt_saver s = opened("c");
    calls = 0;
    die_at = at;
    _exit(!save(&s, 3));
  }
  int code = toy_wait(pid);
  CHECK(code == 0 || code == KILLED, "exit %d", code);
  return code == KILLED;
}

// The program is killed before any of these calls.
static void test_kills(void) {
  int at = 0;
  bool killed;
  do {
    begin(1);
    save_once("c", 2);
    killed = is_killed_in_save(++at);
    CHECK(no_links || is_there("c"), "killed before call %d: no file has the name", at);
    CHECK(is_of("c", 2) || is_of("c.old", 2), "killed before call %d: it is lost", at);
    CHECK(!is_there("c") || is_of("c", 2) || is_of("c", 3), "killed before call %d: half a file",
          at);
    CHECK(is_of("c.old", 1) || is_of("c.old", 2), "killed before call %d: what was kept", at);
    bool was_there = is_there("c");
    save_once("c", 4);
    CHECK(is_of("c", 4) && (!was_there || !is_of("c.old", 1)), "killed before call %d: the next",
          at);
    CHECK(!is_there("c.tmp") && !is_there("c.old.tmp"), "killed before call %d: is left", at);
  } while (killed && at < 30);
  CHECK(!killed && at > 5, "%d calls", at);
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  arena = toy_arena(&program, &options);
  memory = mlrt_device_memory(arena);
  char *folder = enter_scratch();
  for (int i = 0; i < 2; i++) {
    no_links = i;
    test_new_runs();
    test_resumed_runs();
    test_alternating_runs();
    test_failing_calls();
    test_unsynced();
    test_kills();
  }
  test_what_is_none();
  test_in_the_way();
  leave_scratch(folder);
  free(arena);
  mlrt_options_free(&options);
  return failures != 0;
}
