// test_metrics.c: lines of metrics, none lost and none doubled: by what resumes, moves or replaces the file, or fills the
// disk.
#include "runtime/checkpoint.h"
#include "tests/runtime/support_program.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static mlrt_program program;

static bool die_in_ftruncate;
int ftruncate(int fd, off_t bytes) {
  if (die_in_ftruncate)
    _exit(9);
  return (int)syscall(SYS_ftruncate, fd, bytes);
}

// What `eval` says about a checkpoint is in no run: it stays, also behind lines that a run that was killed has written
// after its last checkpoint. That of the evaluation which the resumed run makes up for comes once.
static void test_foreign_lines(void) {
  toy_expect(&program, "--quiet --save=x.st --metrics=x.jsonl --no-times --steps=10", 0, "");
  toy_expect(&program, "eval --save=x.st --metrics=x.jsonl --no-times --split=train", 0, "");
  toy_expect(&program, "--quiet --save=y.st --resume=x.st --metrics=x.jsonl --no-times --steps=26",
             0, "");
  toy_expect(&program, "eval --save=x.st --metrics=x.jsonl --no-times", 0, "");
  toy_expect(&program, "eval --save=y.st --metrics=x.jsonl --no-times", 0, "");
  die_in_ftruncate = true; // killed while lines are cut
  toy_expect(&program, "--quiet --save=x.st --resume --metrics=x.jsonl --no-times", 9, "");
  die_in_ftruncate = false;
  toy_expect(&program, "--quiet --save=x.st --resume --metrics=x.jsonl --no-times --steps=40", 0,
             "");
  CHECK(count_lines("x.jsonl", "{\"eval\":\"train\",\"step\":10,") == 1, "of other data");
  CHECK(count_lines("x.jsonl", "{\"eval\":\"test\",\"step\":10,") == 2, "of the run and of eval");
  CHECK(count_lines("x.jsonl", "\"step\":26") == 0, "younger than the checkpoint");
  CHECK(count_lines("x.jsonl", "{\"step\":") == 11, "of steps: one more than the whole run's");
  CHECK(count_lines("x.jsonl", "\"eval\"") == 6, "of evaluations");
  CHECK(count_lines("x.jsonl", "{") == 17, "and no others");
  CHECK(access("x.jsonl.tmp", F_OK) != 0, "a file is left");
  mlrt_program p = program; // never evaluates by itself
  static const mlrt_setting config[] = {{"steps", MLRT_SET_NUM, 8, NULL}};
  static const mlrt_setting longer[] = {{"steps", MLRT_SET_NUM, 12, NULL}};
  p.config = config;
  p.num_config = 1;
  toy_expect(&p, "--quiet --save=z.st --metrics=z.jsonl --no-times --log-every=4", 0, "");
  toy_expect(&p, "eval --save=z.st --metrics=z.jsonl --no-times", 0, "");
  p.config = longer;
  toy_expect(&p, "--quiet --save=z.st --resume --metrics=z.jsonl --log-every=4", 0, "");
  CHECK(count_lines("z.jsonl", "{\"eval\":\"test\",\"step\":8,") == 1, "an evaluation by hand");
  CHECK(count_lines("z.jsonl", "\"step\":") == 4, "one more than the run's");
}

static int count_bytes(const char *path, char byte) {
  char *text = slurp(path, NULL);
  int num = 0;
  for (const char *at = text; at && *at; at++)
    num += *at == byte;
  free(text);
  return num;
}

// A metrics file that cannot grow for a while has whole lines only, and those that come when it can again.
static void test_full_metrics(void) {
  struct rlimit old, limit;
  getrlimit(RLIMIT_FSIZE, &old);
  unlink("w.jsonl");
  pid_t pid = toy_start(
      &program, "--quiet --no-save --delay=3000 --log-every=1 --metrics=w.jsonl --no-times", "log");
  wait_for_lines("w.jsonl", "\"step\":", 6); // so many that the limit leaves room for the warning
  limit = (struct rlimit){(rlim_t)count_bytes("w.jsonl", '\n') * 100, old.rlim_max};
  prlimit(pid, RLIMIT_FSIZE, &limit, NULL);
  wait_for_lines("log", "warning: cannot write the metrics file 'w.jsonl'", 1);
  prlimit(pid, RLIMIT_FSIZE, &old, NULL);
  CHECK(toy_wait(pid) == 1, "a line was lost");
  CHECK(count_lines("log", "cannot write the metrics") == 1, "said %d times",
        count_lines("log", "cannot write the metrics"));
  CHECK(count_lines("w.jsonl", "\"step\":40,") == 2, "the last lines");
  CHECK(count_bytes("w.jsonl", '{') == count_bytes("w.jsonl", '\n'), "half a line");
}

// `change` gives the metrics file of a run another name, or its name another file: the lines that follow are found there.
static void expect_lines_after(void (*change)(void), const char *first, int lines) {
  unlink("r1.jsonl");
  unlink("r2.jsonl");
  pid_t pid = toy_start(&program, "--save=r.st --delay=6000 --metrics=r1.jsonl --no-times", "log");
  wait_for_lines("r1.jsonl", "\"step\":", 2);
  kill(pid, SIGSTOP); // no line is written while a copy is made
  change();
  kill(pid, SIGCONT);
  CHECK(toy_wait(pid) == 0, "exit code: %s", slurp("log", NULL));
  CHECK(count_lines("log", "warning: the metrics file 'r1.jsonl' has been moved") == 1, "%s",
        slurp("log", NULL));
  CHECK(count_lines("r1.jsonl", "\"step\":40,") == 2, "%s: the last lines are lost", first);
  CHECK(count_lines(first, "{") + (first[1] == '2' ? count_lines("r1.jsonl", "{") : 0) == lines,
        "%s: lines are lost", first);
}

static void move_metrics(void) {
  rename("r1.jsonl", "r2.jsonl");
}

static void replace_metrics(void) {
  char *text = slurp("r1.jsonl", NULL);
  FILE *f = fopen("r2.jsonl", "w");
  fputs(text, f);
  fclose(f);
  free(text);
  rename("r2.jsonl", "r1.jsonl");
}

static void test_metrics_elsewhere(void) {
  int lines = count_lines("ref.jsonl", "{");
  expect_lines_after(move_metrics, "r2.jsonl", lines);
  expect_lines_after(replace_metrics, "r1.jsonl", lines);
}

// A run that does not go on with the one before it keeps its lines, as it keeps its checkpoint.
static void test_metrics_kept(void) {
  unlink("keep.jsonl.old");
  toy_expect(&program, "--no-save --no-times --metrics=keep.jsonl", 0, "done");
  CHECK(access("keep.jsonl.old", F_OK) && same_file("keep.jsonl", "ref.jsonl"),
        "of no earlier run");
  const char *said = "the metrics of an earlier run are kept as 'keep.jsonl.old'";
  toy_expect(&program, "--no-save --no-times --metrics=keep.jsonl --seed=9 --steps=9", 0, said);
  CHECK(count_lines("log", "kept as") == 1, "said %d times", count_lines("log", "kept as"));
  CHECK(same_file("keep.jsonl.old", "ref.jsonl"), "the earlier lines are lost");
  CHECK(count_lines("keep.jsonl", "{") < count_lines("ref.jsonl", "{"), "lines of two runs");
  CHECK(access("keep.jsonl.tmp", F_OK) && access("keep.jsonl.old.tmp", F_OK), "a file is left");
  toy_expect(&program, "--save=keep.st --metrics=keep.jsonl --steps=0", 0, said);
  CHECK(count_lines("keep.jsonl", "{") == 0, "lines of a run without a step");
  toy_expect(&program, "--no-save --metrics=keep.jsonl --steps=9", 0, "done");
  CHECK(count_lines("log", "kept as") == 0, "an empty file is kept");
  toy_expect(&program, "--save=keep.jsonl.old --metrics=keep.jsonl", 2,
             "--save and --metrics are one file");
  unlink("keep.jsonl.old");
  mkdir("keep.jsonl.old", 0777);
  toy_expect(&program, "--no-save --metrics=keep.jsonl", 1,
             "cannot keep the metrics of an earlier run, 'keep.jsonl', as");
  rmdir("keep.jsonl.old");
  char name[256], options[300];
  memset(name, 'n', 253); // NAME.old has more letters than a file system takes
  name[253] = 0;
  snprintf(options, sizeof options, "--no-save --metrics=%s", name);
  toy_expect(&program, options, 0, "done");
  toy_expect(&program, options, 1, "cannot keep the metrics of an earlier run|File name too long");
}

// Going back to an earlier run must not cost the lines of the one that took its place; going on cuts what comes again.
static void test_metrics_of_branches(void) {
  unlink("br.jsonl");
  toy_expect(&program, "--quiet --save=br.st --metrics=br.jsonl --steps=10", 0, "");
  toy_expect(&program, "--quiet --save=br.st --metrics=br.jsonl --seed=9", 0, "");
  unlink("br.jsonl.old");
  toy_expect(&program, "--resume --save=br.st --metrics=br.jsonl --steps=50", 0, "done");
  CHECK(access("br.jsonl.old", F_OK), "kept by a run that goes on");
  char *all = slurp("br.jsonl", NULL);
  toy_expect(&program, "--resume=br.st.old --save=br.st --metrics=br.jsonl --steps=12", 0,
             "the metrics of an earlier run are kept as 'br.jsonl.old'");
  char *kept = slurp("br.jsonl.old", NULL);
  CHECK(!strcmp(all, kept), "lines are lost:\n%s", kept);
  CHECK(count_lines("br.jsonl", "\"step\":12,") > 0 && !count_lines("br.jsonl", "\"step\":50,"),
        "lines of another run");
  free(all);
  free(kept);
}

// One that is killed before it saves, and begun again by the same command, must not take its own lines for the other run's.
static void test_branches_killed(void) {
  unlink("bk.jsonl");
  toy_expect(&program, "--quiet --save=bk.st --metrics=bk.jsonl --steps=10", 0, "");
  toy_expect(&program, "--quiet --save=bk.st --metrics=bk.jsonl --seed=9", 0, "");
  unlink("bk.jsonl.old");
  char *all = slurp("bk.jsonl", NULL);
  for (int i = 0; i < 2; i++) {
    pid_t pid = toy_start(
        &program, "--resume=bk.st.old --save=bk.st --metrics=bk.jsonl --delay=5000 --steps=40",
        "log");
    toy_wait_until_begun(pid); // by then lines are cut
    wait_for_lines("bk.jsonl", "\"step\":2", 1);
    kill(pid, SIGKILL);
    toy_wait(pid);
    char *kept = slurp("bk.jsonl.old", NULL);
    CHECK(!strcmp(all, kept), "lines are lost, start %d:\n%s", i, kept);
    free(kept);
  }
  free(all);
}

// An evaluation that goes on while a new run takes the file's name adds its line to the new file, which that run has locked.
static void test_evaluation_beside_new_run(void) {
  mlrt_program slow = program;
  slow.funcs[MLRT_EVAL].run = toy_slow_eval;
  toy_expect(&program, "--quiet --save=ev.st --metrics=ev.jsonl --no-times", 0, "");
  unlink("evaluating");
  pid_t evaluation = toy_start(&slow, "eval --save=ev.st --metrics=ev.jsonl --no-times", "said");
  wait_for_file("evaluating");
  pid_t run = toy_start(&program,
                        "--no-save --metrics=ev.jsonl --delay=50000 --seed=9 --log-every=1", "log");
  kill(evaluation, SIGSTOP); // until that run has its first line
  wait_for_file("ev.jsonl.old");
  kill(evaluation, SIGCONT);
  CHECK(toy_wait(evaluation) == 0, "%s", slurp("said", NULL));
  CHECK(count_lines("ev.jsonl", "{\"eval\":\"test\",\"step\":40,") == 1,
        "its line is not in the new file");
  kill(run, SIGKILL);
  toy_wait(run);
  CHECK(same_file("ev.jsonl.old", "ref.jsonl"), "it is in the old one");
}

// A disk that takes the lines and then refuses to hold them; what cannot be synced at all is no such disk.
static int fdatasync_errno;
int fdatasync(int fd) {
  (void)fd;
  errno = fdatasync_errno;
  return fdatasync_errno ? -1 : 0;
}

static bool note_folders;
int fsync(int fd) {
  struct stat st, folder;
  if (note_folders && fstat(fd, &st) == 0 && stat("lines", &folder) == 0 &&
      st.st_ino == folder.st_ino)
    close(open("synced", O_WRONLY | O_CREAT, 0600));
  return (int)syscall(SYS_fsync, fd);
}

// A file that is new has no name on disk before its folder is: nor would its lines, of which a checkpoint elsewhere knows.
static void test_metrics_name_is_synced(void) {
  mkdir("lines", 0777);
  note_folders = true;
  toy_expect(&program, "--quiet --save=i.st --metrics=lines/i.jsonl", 0, "");
  note_folders = false;
  CHECK(access("synced", F_OK) == 0, "the folder of the metrics is not synced");
}

static void test_metrics_sync(void) {
  fdatasync_errno = EIO;
  toy_expect(&program, "--save=i.st --metrics=i.jsonl", 1,
             "warning: cannot write the metrics file 'i.jsonl': Input/output error|done: 40 steps");
  CHECK(count_lines("log", "cannot write the metrics") == 1, "said more than once");
  CHECK(same_file("ref.st", "i.st"), "other bytes");
  static const int none[] = {EINVAL, ENOTSUP, EROFS};
  for (int i = 0; i < 3; i++) {
    fdatasync_errno = none[i];
    toy_expect(&program, "--save=i.st --metrics=/dev/null", 0, "done");
    CHECK(count_lines("log", "warning") == 0, "errno %d is an error", none[i]);
  }
  fdatasync_errno = 0;
}

// The longest lines that there are: as many results as a program may have, with long names.
static void test_long_lines(void) {
  enum { NUM = MLRT_MAX_RESULTS, LENGTH = 300 };
  static mlrt_result results[NUM];
  static char names[NUM][LENGTH + 1];
  for (int i = 0; i < NUM; i++) {
    memset(names[i], 'n', LENGTH);
    snprintf(names[i] + LENGTH - 8, 9, "_%07d", i);
    results[i] = toy_results[i > 0];
    results[i].name = names[i];
  }
  mlrt_program p = program;
  p.funcs[MLRT_STEP].results = p.funcs[MLRT_EVAL].results = results;
  p.funcs[MLRT_STEP].num_results = p.funcs[MLRT_EVAL].num_results = NUM;
  toy_expect(&p, "--quiet --save=l.st --metrics=l.jsonl --steps=10", 0, "");
  CHECK(count_lines("l.jsonl", "\"step\":") == 4, "log lines and evaluation");
  CHECK(count_lines("l.jsonl", "n_0000255\":") == 4, "the last result");
  CHECK(count_lines("l.jsonl", "\"time\":") == 4, "the end of each line");
  toy_expect(&p, "eval --quiet --save=l.st --metrics=l.jsonl --split=test", 0, "");
  CHECK(count_lines("l.jsonl", "n_0000255\":") == 5, "of an evaluation alone");
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  char *folder = enter_scratch();
  toy_expect(&program, "--quiet --save=ref.st --metrics=ref.jsonl --no-times", 0, "");
  test_foreign_lines();
  test_full_metrics();
  test_metrics_elsewhere();
  test_metrics_kept();
  test_metrics_of_branches();
  test_branches_killed();
  test_evaluation_beside_new_run();
  test_metrics_name_is_synced();
  test_metrics_sync();
  test_long_lines();
  leave_scratch(folder);
  return failures != 0;
}
