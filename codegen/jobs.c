// jobs.c: see jobs.h.
#include "codegen/jobs.h"
#include "codegen/stopping.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void cg_command_add(cg_command *c, const char *arg) {
  BUG_IF(c->num + 1 >= CG_MAX_ARGS, "too many arguments");
  c->argv[c->num++] = arg;
}

enum { NUM_MADE = sizeof((cg_job){0}).makes / sizeof(char *) };

// A file that it should have written and has not; NULL: none.
static const char *missing(const cg_job *j) {
  struct stat st;
  for (int i = 0; i < NUM_MADE && j->makes[i]; i++)
    if (stat(j->makes[i], &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
      return j->makes[i];
  return NULL;
}

// --- beginning -------------------------------------------------------------------------------
static void show(const cg_command *c) {
  for (int i = 0; i < c->num; i++)
    fprintf(stderr, "%s%s", i ? " " : "+ ", c->argv[i]);
  fputc('\n', stderr);
}

// Not when a signal wants mltc to end.
static void begin(cg_job *j, bool verbose) {
  const cg_command *c = &j->command;
  for (int i = 0; i < NUM_MADE && j->makes[i]; i++)
    unlink(j->makes[i]);
  j->begun = true;
  j->ok = false;
  j->pid = 0;
  j->error = 0;
  if (cg_stopping_signal())
    return;
  if (verbose)
    show(c);
  posix_spawn_file_actions_t io;
  posix_spawn_file_actions_init(&io);
  posix_spawn_file_actions_addopen(&io, 1, j->log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&io, 1, 2);
  j->error =
      posix_spawnp(&j->pid, c->argv[0], &io, NULL, (char *const *)(uintptr_t)c->argv, environ);
  posix_spawn_file_actions_destroy(&io);
  if (j->error)
    j->pid = 0;
}

// --- ending ----------------------------------------------------------------------------------
static void stop_all(const cg_job *jobs, size_t num) {
  for (size_t i = 0; i < num; i++)
    if (jobs[i].pid > 0)
      kill(jobs[i].pid, cg_stopping_times() > 1 ? SIGKILL : SIGTERM);
}

// Waits for whichever ends first. Where a signal wants mltc to end, all do: it is looked for while none can come, and
// waiting lets them come, or one that came between the two would be noticed when a compiler has ended by itself.
static void finish_one(cg_job *jobs, size_t num) {
  int status = 0;
  pid_t pid;
  sigset_t before, waiting;
  cg_stopping_hold(&before);
  waiting = before;
  sigdelset(&waiting, SIGCHLD); // which whoever started this process may hold
  while ((pid = waitpid(-1, &status, WNOHANG)) == 0) {
    if (cg_stopping_signal())
      stop_all(jobs, num);
    sigsuspend(&waiting);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  for (size_t i = 0; i < num; i++)
    if (jobs[i].pid > 0 && (jobs[i].pid == pid || pid < 0)) {
      jobs[i].pid = 0;
      jobs[i].status = status;
      jobs[i].ok = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !missing(&jobs[i]);
    }
}

static size_t num_running(const cg_job *jobs, size_t num) {
  size_t n = 0;
  for (size_t i = 0; i < num; i++)
    n += jobs[i].pid > 0;
  return n;
}

// Those that this process may use: more compilers at a time would only take memory from each other.
static size_t num_processors(void) {
  cpu_set_t set; // too small where the kernel counts more than 1,024
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  long n = known ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (size_t)n;
}

// The first that may begin now, of those that wait for none if there is one; NULL: none may, until one ends.
static cg_job *next_ready(const cg_jobs *jobs) {
  cg_job *waited = NULL;
  for (size_t i = 0; i < jobs->num; i++) {
    cg_job *j = &jobs->at[i];
    if (!j->begun && j->after == CG_AT_ONCE)
      return j;
    if (!j->begun && !waited && jobs->at[j->after].ok)
      waited = j;
  }
  return waited;
}

// So that it ends waiting, as no signal without a handler does.
static void note_child(int signal) {
  (void)signal;
}

const cg_job *cg_jobs_run(cg_jobs *jobs, bool verbose) {
  size_t most = num_processors(), running = 0;
  struct sigaction child = {.sa_handler = note_child, .sa_flags = SA_RESTART}, before;
  sigemptyset(&child.sa_mask);
  sigaction(SIGCHLD, &child, &before);
  for (cg_job *next; (next = next_ready(jobs)) || running > 0;) {
    if (next && running < most)
      begin(next, verbose);
    else
      finish_one(jobs->at, jobs->num);
    running = num_running(jobs->at, jobs->num);
  }
  sigaction(SIGCHLD, &before, NULL);
  for (size_t i = 0; i < jobs->num; i++)
    if (!jobs->at[i].ok)
      return &jobs->at[i];
  return NULL;
}

const char *cg_job_explain(ir_arena *a, const cg_job *j) {
  size_t len = 0;
  const char *program = j->command.argv[0];
  if (j->error)
    return ir_format(a, "%s failed: cannot run '%s': %s", j->what, program, strerror(j->error));
  const char *text = ir_read_file(a, j->log, &len), *how = "";
  if (WIFSIGNALED(j->status))
    how = ir_format(a, ": '%s' was ended by signal %d (%s)", program, WTERMSIG(j->status),
                    strsignal(WTERMSIG(j->status)));
  else if (WEXITSTATUS(j->status) == 0 && missing(j))
    how = ir_format(a, ": '%s' has written nothing to '%s'", program, missing(j));
  if (!text || !len)
    text = *how ? "" : "(no output)";
  return ir_format(a, "%s failed%s%s%s", j->what, how, *text ? ":\n" : "", text);
}
