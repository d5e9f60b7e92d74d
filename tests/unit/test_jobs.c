// test_jobs.c: commands run together: one after another waits until that has ended, and well; what fails, dies or
// cannot be run says so; a log has what its own command printed, and nothing of before.
#include "codegen/jobs.h"
#include "codegen/stopping.h"
#include "support_cuda.h"
#include "support_ir.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

static size_t add(ir_arena *a, cg_jobs *jobs, const char *folder, const char *text, size_t after) {
  const char *log = ir_format(a, "%s/%zu.log", folder, jobs->num);
  cg_job j = {.what = ir_format(a, "job %zu", jobs->num), .log = log, .after = after};
  cg_command_add(&j.command, "/bin/sh");
  cg_command_add(&j.command, "-c");
  cg_command_add(&j.command, ir_format(a, "cd %s && %s", folder, text));
  IR_PUSH(a, *jobs, j);
  return jobs->num - 1;
}

// What the first that failed says; NULL: none did.
static const char *run(ir_arena *a, cg_jobs *jobs) {
  const cg_job *failed = cg_jobs_run(jobs, false);
  return failed ? cg_job_explain(a, failed) : NULL;
}

static void test_order(ir_arena *a, const char *folder) {
  cg_jobs jobs = {0};
  size_t slow = add(a, &jobs, folder, "sleep 0.3; echo made >made", CG_AT_ONCE);
  add(a, &jobs, folder, "grep made made", slow);
  CHECK(!run(a, &jobs), "it began before the other had ended");
}

static void test_failure(ir_arena *a, const char *folder, const char *text, const char *says) {
  cg_jobs jobs = {0};
  size_t bad = add(a, &jobs, folder, text, CG_AT_ONCE);
  size_t next = add(a, &jobs, folder, "true", bad);
  const char *why = run(a, &jobs);
  CHECK(why && strstr(why, "job 0 failed") && strstr(why, says), "%s: %s", text,
        why ? why : "well");
  CHECK(!jobs.at[next].begun, "%s: the next began", text);
}

// What it is to make: nothing of before, and something now.
static void test_made(ir_arena *a, const char *folder, const char *text, bool well) {
  cg_jobs jobs = {0};
  size_t maker = add(a, &jobs, folder, text, CG_AT_ONCE),
         next = add(a, &jobs, folder, "true", maker);
  jobs.at[maker].makes[0] = ir_format(a, "%s/one", folder);
  jobs.at[maker].makes[1] = ir_format(a, "%s/two", folder);
  ir_write_file(jobs.at[maker].makes[1], "before", 6);
  const char *why = run(a, &jobs);
  CHECK(!why == well && jobs.at[next].ok == well, "%s: %s", text, why ? why : "well");
  CHECK(well || strstr(why, "'/bin/sh' has written nothing to '"), "%s: %s", text, why);
}

// Those that wait come last, whatever their place.
static void test_waiting_last(ir_arena *a, const char *folder) {
  cg_jobs jobs = {0};
  size_t first = add(a, &jobs, folder, "echo first >>order", CG_AT_ONCE);
  add(a, &jobs, folder, "echo waited >>order", first);
  for (int i = 0; i < 20; i++)
    add(a, &jobs, folder, "echo at once >>order", CG_AT_ONCE);
  CHECK(!run(a, &jobs), "they fail");
  size_t len = 0;
  const char *order = ir_read_file(a, ir_format(a, "%s/order", folder), &len);
  const char *waited = order ? strstr(order, "waited") : NULL;
  size_t behind = 0;
  for (const char *s = waited; s && (s = strstr(s, "once")); s++)
    behind++;
  CHECK(waited && behind < 20, "of 20 that need not wait, %zu came behind:\n%s", behind, order);
}

static void test_absent(ir_arena *a, const char *folder) {
  cg_jobs jobs = {0};
  cg_job j = {.what = "this", .log = ir_format(a, "%s/0.log", folder), .after = CG_AT_ONCE};
  cg_command_add(&j.command, "/nonexistent/program");
  IR_PUSH(a, jobs, j);
  const char *why = run(a, &jobs);
  CHECK(why && strstr(why, "cannot run '/nonexistent/program': No such file"), "%s",
        why ? why : "well");
}

// The one of jobs.c: a signal comes when it has been looked for, and before the wait for a compiler begins.
static bool signal_is_due;
pid_t waitpid(pid_t pid, int *status, int options) {
  if (signal_is_due)
    raise(SIGTERM);
  signal_is_due = false;
  return wait4(pid, status, options, NULL);
}

static void test_signal(ir_arena *a, const char *folder) {
  cg_jobs jobs = {0};
  add(a, &jobs, folder, "exec sleep 9", CG_AT_ONCE);
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  cg_stopping_begin();
  signal_is_due = true;
  const char *why = run(a, &jobs);
  CHECK(cg_stopping_signal() == SIGTERM, "signal %d", cg_stopping_signal());
  CHECK(why && strstr(why, "was ended by signal 15"), "the signal is not noticed: %s",
        why ? why : "well");
  sigaction(SIGTERM, &ignore, NULL); // it ends no test
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *folder = support_new_folder(a);
  test_order(a, folder);
  test_failure(a, folder, "echo a long message of one; exit 1", "a long message of one");
  test_failure(a, folder, "echo two >&2; exit 3", "two");
  test_failure(a, folder, "kill -9 $$", "was ended by signal 9 (Killed)");
  test_failure(a, folder, "exit 1", "(no output)"); // and nothing of the runs before
  test_made(a, folder, "echo 1 >one; echo 2 >two", true);
  test_made(a, folder, "echo 1 >one", false);
  test_made(a, folder, "echo 1 >one; : >two", false);
  test_waiting_last(a, folder);
  test_absent(a, folder);
  test_signal(a, folder);
  cg_command full = {0}; // exactly as many as there is room for, with the NULL behind
  for (int i = 0; i + 1 < CG_MAX_ARGS; i++)
    cg_command_add(&full, "x");
  CHECK(full.num == CG_MAX_ARGS - 1, "%d arguments", full.num);
  support_remove_folder(a, folder);
  ir_arena_free(a);
  return support_finish("test_jobs");
}
