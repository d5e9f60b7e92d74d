// toolchain.c: runs the C compiler on the generated files, several at a time, and links the
// trainer.
//
// The compiler is clang 14 or newer: $MLTC_CC, else the first of clang, clang-20 ... clang-14 in
// PATH. The runtime (libmlrt.a, libz.a, mlrt.h) lies in ../lib/mltc of the folder of mltc itself,
// in the build tree as in an installation.
#include "codegen/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARGS = 64, OLDEST_CLANG = 14, NEWEST_CLANG = 24 };

typedef struct command {
  const char *argv[MAX_ARGS];
  int num;
} command;

typedef struct build {
  ir_arena *a;
  const cg_target *t;
  const cg_build *b;
  const char *cc, *lib, *dir;
  const char **why;
} build;

// --- finding things --------------------------------------------------------------------------
static bool in_path(ir_arena *a, const char *name) {
  if (strchr(name, '/'))
    return access(name, X_OK) == 0;
  const char *path = getenv("PATH");
  for (const char *p = path ? path : ""; *p;) {
    size_t len = strcspn(p, ":");
    if (access(ir_format(a, "%.*s/%s", (int)len, p, name), X_OK) == 0)
      return true;
    p += len + (p[len] == ':');
  }
  return false;
}

static const char *find_compiler(ir_arena *a) {
  const char *cc = getenv("MLTC_CC");
  if (cc && *cc)
    return in_path(a, cc) ? cc : NULL;
  if (in_path(a, "clang"))
    return "clang";
  for (int v = NEWEST_CLANG; v >= OLDEST_CLANG; v--)
    if (in_path(a, ir_format(a, "clang-%d", v)))
      return ir_format(a, "clang-%d", v);
  return NULL;
}

static const char *find_library(ir_arena *a) {
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0)
    return NULL;
  self[n] = 0;
  char *slash = strrchr(self, '/');
  *slash = 0;
  char *dir = ir_format(a, "%s/../lib/mltc", self);
  return access(ir_format(a, "%s/mlrt.h", dir), R_OK) == 0 ? dir : NULL;
}

static bool fail(const build *x, const char *message) {
  *x->why = message;
  return false;
}

static bool find_tools(build *x) {
  x->cc = find_compiler(x->a);
  if (!x->cc)
    return fail(x, "no C compiler found: mltc needs clang 14 or newer (on Debian and Ubuntu: "
                   "apt-get install clang), or set MLTC_CC to one");
  x->lib = find_library(x->a);
  if (!x->lib)
    return fail(x, "the runtime (lib/mltc/mlrt.h, libmlrt.a) is not beside this mltc: build the "
                   "target mlrt, or install with cmake --install");
  return true;
}

// --- processes -------------------------------------------------------------------------------
static void add(command *c, const char *arg) {
  BUG_IF(c->num + 1 >= MAX_ARGS, "too many arguments");
  c->argv[c->num++] = arg;
}

static void show(const command *c) {
  for (int i = 0; i < c->num; i++)
    fprintf(stderr, "%s%s", i ? " " : "+ ", c->argv[i]);
  fputc('\n', stderr);
}

// Starts a command; what it prints goes to `log` when that is given.
static pid_t start(const build *x, const command *c, const char *log) {
  if (x->b->verbose)
    show(c);
  posix_spawn_file_actions_t io;
  posix_spawn_file_actions_init(&io);
  if (log) {
    posix_spawn_file_actions_addopen(&io, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&io, 1, 2);
  }
  pid_t pid = -1;
  int error = posix_spawnp(&pid, c->argv[0], &io, NULL, (char *const *)(uintptr_t)c->argv, environ);
  posix_spawn_file_actions_destroy(&io);
  return error ? -1 : pid;
}

static bool finish(pid_t pid) {
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return false;
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool explain(const build *x, const char *what, const char *log) {
  size_t len = 0;
  const char *text = log ? ir_read_file(x->a, log, &len) : NULL;
  return fail(x, ir_format(x->a, "%s failed:\n%s", what, text ? text : "(no output)"));
}

// --- compiling -------------------------------------------------------------------------------
static void add_machine(const build *x, command *c) {
  if (x->t->triple) {
    add(c, ir_format(x->a, "--target=%s", x->t->triple));
    add(c, "-ffreestanding"); // the other machine's libc headers may not be installed here
  }
  if (x->t->march)
    add(c, ir_format(x->a, "-march=%s", x->t->march));
  if (x->t->vector_bytes == 64) // else some tunings cut 64-byte vectors in two
    add(c, "-mprefer-vector-width=512");
}

static command compile_command(const build *x, const cg_source *s, const char *out) {
  command c = {0};
  add(&c, x->cc);
  add(&c, "-std=gnu11");
  if (s->small && x->b->opt_level > 0) {
    add(&c, "-Oz");
    add(&c, "-fno-slp-vectorize"); // half of the time, for nothing
  } else {
    add(&c, ir_format(x->a, "-O%d", x->b->opt_level));
  }
  add_machine(x, &c);
  // Fused multiply-add wherever the source has a product in a sum: decided here, once, so the
  // binary's results are fixed. No errno, no traps: vector code may compute lanes it discards.
  add(&c, "-ffp-contract=fast");
  add(&c, "-fno-math-errno");
  add(&c, "-fno-trapping-math");
  add(&c, "-fno-stack-protector");
  add(&c, "-fno-asynchronous-unwind-tables"); // nothing unwinds
  add(&c, "-ffunction-sections");
  if (!x->t->triple)
    add(&c, "-fno-pie"); // tables of addresses need no relocations at start
  add(&c, "-w");
  add(&c, "-I");
  add(&c, x->lib);
  add(&c, "-c");
  add(&c, ir_format(x->a, "%s/%s", x->dir, s->name));
  add(&c, "-o");
  add(&c, out);
  return c;
}

static long num_jobs(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n;
}

static const char *with_suffix(const build *x, const char *source, const char *suffix) {
  return ir_format(x->a, "%s/%.*s%s", x->dir, (int)(strlen(source) - 2), source, suffix);
}

typedef struct job { // one file
  pid_t pid;         // 0: it does not run
  bool ok;
} job;

static void start_job(const build *x, const cg_source *s, job *j) {
  command c = compile_command(x, s, with_suffix(x, s->name, ".o"));
  pid_t pid = start(x, &c, with_suffix(x, s->name, ".log"));
  *j = (job){.pid = pid > 0 ? pid : 0};
}

// Waits for whichever ends first.
static void finish_one(job *jobs, size_t num) {
  int status = 0;
  pid_t pid;
  do
    pid = waitpid(-1, &status, 0);
  while (pid < 0 && errno == EINTR);
  for (size_t i = 0; i < num; i++)
    if (jobs[i].pid > 0 && (jobs[i].pid == pid || pid < 0))
      jobs[i] = (job){.ok = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

static size_t num_running(const job *jobs, size_t num) {
  size_t n = 0;
  for (size_t i = 0; i < num; i++)
    n += jobs[i].pid > 0;
  return n;
}

// As many at a time as there are processors. The first file that fails, in their order, is shown.
static bool compile_all(build *x, const cg_sources *s) {
  size_t most = (size_t)num_jobs();
  job *jobs = IR_NEW_ARRAY(x->a, job, s->num);
  for (size_t i = 0; i < s->num; i++) {
    while (num_running(jobs, i) == most)
      finish_one(jobs, i);
    start_job(x, &s->at[i], &jobs[i]);
  }
  while (num_running(jobs, s->num) > 0)
    finish_one(jobs, s->num);
  for (size_t i = 0; i < s->num; i++)
    if (!jobs[i].ok)
      return explain(x, ir_format(x->a, "compiling the generated %s", s->at[i].name),
                     with_suffix(x, s->at[i].name, ".log"));
  return true;
}

static bool link_objects(build *x, const cg_sources *s) {
  command c = {0};
  add(&c, x->cc);
  if (x->t->triple) {
    add(&c, ir_format(x->a, "--target=%s", x->t->triple));
    add(&c, "-r");
    add(&c, "-nostdlib");
    add(&c, "-fuse-ld=lld");
  }
  add(&c, "-o");
  add(&c, x->b->out);
  for (size_t i = 0; i < s->num; i++)
    add(&c, with_suffix(x, s->at[i].name, ".o"));
  if (!x->t->triple) {
    add(&c, ir_format(x->a, "%s/libmlrt.a", x->lib));
    add(&c, ir_format(x->a, "%s/libz.a", x->lib));
    add(&c, "-no-pie");
    add(&c, "-Wl,--gc-sections,--build-id=none,-s,-O2,--hash-style=gnu,-z,noseparate-code");
    add(&c, "-lm");
    add(&c, "-lpthread");
  }
  const char *log = ir_format(x->a, "%s/link.log", x->dir);
  return finish(start(x, &c, log)) || explain(x, "linking", log);
}

// --- the folder of intermediate files --------------------------------------------------------
static bool make_dir(build *x) {
  if (x->b->keep_dir) {
    x->dir = x->b->keep_dir;
    if (mkdir(x->dir, 0777) == 0 || errno == EEXIST)
      return true;
  } else {
    const char *tmp = getenv("TMPDIR");
    char *name = ir_format(x->a, "%s/mltc-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    x->dir = mkdtemp(name);
    if (x->dir)
      return true;
    x->dir = name;
  }
  return fail(x, ir_format(x->a, "cannot make the folder '%s': %s", x->dir, strerror(errno)));
}

static void remove_dir(const build *x) {
  if (x->b->keep_dir)
    return;
  DIR *d = opendir(x->dir);
  for (struct dirent *e; d && (e = readdir(d));)
    unlinkat(dirfd(d), e->d_name, 0);
  if (d)
    closedir(d);
  rmdir(x->dir);
}

static bool write_sources(build *x, const cg_sources *s) {
  for (size_t i = 0; i < s->num; i++) {
    const char *path = ir_format(x->a, "%s/%s", x->dir, s->at[i].name);
    if (!ir_write_file(path, s->at[i].text, s->at[i].len))
      return fail(x, ir_format(x->a, "cannot write '%s': %s", path, strerror(errno)));
  }
  return true;
}

// Said before the seconds that compiling takes, and not by the linker.
static bool check_output(build *x) {
  const char *out = x->b->out, *slash = strrchr(out, '/');
  const char *dir = slash == out ? "/"
                    : slash      ? ir_format(x->a, "%.*s", (int)(slash - out), out)
                                 : ".";
  struct stat st;
  if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
    return fail(x, ir_format(x->a, "cannot write '%s': it is a folder", out));
  if (access(dir, W_OK | X_OK) != 0)
    return fail(x, ir_format(x->a, "cannot write '%s': %s", out, strerror(errno)));
  return true;
}

bool cg_compile(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                const char **why) {
  build x = {.a = a, .t = t, .b = b, .why = why};
  if (!find_tools(&x) || !check_output(&x) || !make_dir(&x))
    return false;
  bool ok = write_sources(&x, s) && compile_all(&x, s) && link_objects(&x, s);
  remove_dir(&x);
  return ok;
}

// The compiler names its temporary folder, which is another one each time: only file names stay.
static const char *without_dir(const build *x, const char *text) {
  const char *dir = ir_format(x->a, "%s/", x->dir);
  ir_buf b = ir_buf_new(x->a);
  for (const char *hit; (hit = strstr(text, dir)); text = hit + strlen(dir))
    ir_buf_write(&b, text, (size_t)(hit - text));
  ir_buf_puts(&b, text);
  return ir_buf_str(&b);
}

const char *cg_disassemble(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                           const char *kind, const char **why) {
  build x = {.a = a, .t = t, .b = b, .why = why};
  if (!find_tools(&x) || !make_dir(&x))
    return NULL;
  ir_buf out = ir_buf_new(a);
  bool ok = write_sources(&x, s);
  for (size_t i = 0; ok && i < s->num; i++) {
    const char *text = with_suffix(&x, s->at[i].name, ".s");
    const char *log = with_suffix(&x, s->at[i].name, ".log");
    command c = compile_command(&x, &s->at[i], text);
    add(&c, "-S");
    if (!strcmp(kind, "llvm"))
      add(&c, "-emit-llvm");
    size_t len = 0;
    ok = finish(start(&x, &c, log)) || explain(&x, "compiling", log);
    const char *body = ok ? ir_read_file(a, text, &len) : NULL;
    if (body)
      ir_buf_printf(&out, "%s %s\n%s", strcmp(kind, "llvm") ? "#" : ";", s->at[i].name,
                    without_dir(&x, body));
  }
  remove_dir(&x);
  return ok ? ir_buf_str(&out) : NULL;
}
