// toolchain.c: runs the C compiler on the generated files, several at a time, and links the
// trainer. Images for GPUs are made beside that (cuda_toolchain.c); objects that have been made before
// come from the cache (objects.c).
//
// The compiler is clang 14 or newer: $MLTC_CC, else the first of clang, clang-24 ... clang-14 in
// PATH. The runtime (libmlrt.a, libz.a, mlrt.h) lies in ../lib/mltc of the folder of mltc itself,
// in the build tree as in an installation.
#include "codegen/toolchain.h"
#include "codegen/stopping.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/cuda_toolchain.h"
#include "codegen/objects.h"

enum { OLDEST_CLANG = 14, NEWEST_CLANG = 24 };

// --- finding things --------------------------------------------------------------------------
// Folders may be entered, which is the same bit.
static bool is_program(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

const char *cg_find_program(ir_arena *a, const char *name) {
  if (strchr(name, '/'))
    return is_program(name) ? name : NULL;
  const char *path = getenv("PATH");
  for (const char *p = path ? path : ""; *p;) {
    size_t len = strcspn(p, ":");
    const char *at = ir_format(a, "%.*s/%s", (int)len, p, name);
    if (is_program(at))
      return at;
    p += len + (p[len] == ':');
  }
  return NULL;
}

static bool in_path(ir_arena *a, const char *name) {
  return cg_find_program(a, name) != NULL;
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

const char *cg_find_library(ir_arena *a) {
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

bool cg_fail(const cg_tools *x, const char *message) {
  *x->why = message;
  return false;
}

static bool find_tools(cg_tools *x) {
  const char *named = getenv("MLTC_CC");
  x->cc = find_compiler(x->a);
  if (!x->cc && named && *named)
    return cg_fail(x, ir_format(x->a,
                                "no C compiler found: MLTC_CC is '%s', which is no program here; "
                                "mltc needs clang %d or newer",
                                named, OLDEST_CLANG));
  if (!x->cc)
    return cg_fail(x, "no C compiler found: mltc needs clang 14 or newer (on Debian and Ubuntu: "
                      "apt-get install clang), or set MLTC_CC to one");
  x->lib = cg_find_library(x->a);
  if (!x->lib)
    return cg_fail(x, "the runtime (lib/mltc/mlrt.h, libmlrt.a) is not beside this mltc: build the "
                      "target mlrt, or install with cmake --install");
  x->cache = x->b->no_cache ? (cg_cache){.a = x->a} : cg_cache_open(x->a);
  return true;
}

// --- jobs ------------------------------------------------------------------------------------
cg_job *cg_add_command(const cg_tools *x, cg_jobs *jobs, const char *what, const char *log,
                       const cg_command *c) {
  cg_job j = {.what = what, .command = *c, .log = log, .after = CG_AT_ONCE};
  IR_PUSH(x->a, *jobs, j);
  return &jobs->at[jobs->num - 1];
}

static bool run_jobs(const cg_tools *x, cg_jobs *jobs) {
  const cg_job *failed = cg_jobs_run(jobs, x->b->verbose);
  return !failed || cg_fail(x, cg_job_explain(x->a, failed));
}

const char *cg_ask(const cg_tools *x, const char *name, const cg_command *c) {
  const char *log = ir_format(x->a, "%s/%s-says.log", x->dir, name);
  size_t len = 0;
  cg_jobs jobs = {0};
  cg_add_command(x, &jobs, name, log, c);
  return run_jobs(x, &jobs) ? ir_read_file(x->a, log, &len) : NULL;
}

const char *cg_compiler_version(const cg_tools *x) {
  cg_command ask = {0};
  cg_command_add(&ask, x->cc);
  if (x->t->triple) // of which there may be a configuration file
    cg_command_add(&ask, ir_format(x->a, "--target=%s", x->t->triple));
  cg_command_add(&ask, "--version");
  return cg_ask(x, "clang", &ask);
}

// What a compiler that is none of ours says of the generated files helps nobody.
static void blame_compiler(cg_tools *x) {
  static const char said[] = "clang version ";
  const char *why = *x->why, *version = cg_compiler_version(x);
  const char *number = version ? strstr(version, said) : NULL;
  *x->why = why;
  if (cg_stopping_signal() || (number && atoi(number + sizeof said - 1) >= OLDEST_CLANG))
    return;
  if (version)
    *x->why = ir_format(x->a, "%s\nhelp: mltc needs clang %d or newer; '%s' is: %.*s", why,
                        OLDEST_CLANG, x->cc, (int)strcspn(version, "\n"), version);
  else
    *x->why =
        ir_format(x->a,
                  "%s\nhelp: '%s --version' fails, too: it is no clang %d or newer, or a limit "
                  "(ulimit -a) keeps it from running",
                  why, x->cc, OLDEST_CLANG);
}

// --- compiling -------------------------------------------------------------------------------
static void add_machine(const cg_tools *x, cg_command *c) {
  if (x->t->triple)
    cg_command_add(c, ir_format(x->a, "--target=%s", x->t->triple));
  if (x->t->bare)
    cg_command_add(c, "-ffreestanding"); // the other machine's libc headers are not installed here
  if (x->t->march)
    cg_command_add(c, ir_format(x->a, "-march=%s", x->t->march));
  if (x->t->vector_bytes == 64) // else some tunings cut 64-byte vectors in two
    cg_command_add(c, "-mprefer-vector-width=512");
}

// Kernels have their vectors already: of a loop's addresses SLP would make vectors, too, for which a tile's sums go to
// the stack. And they have their loops unrolled where that gains: copies of others took a quarter of the time of
// compiling and a fifth of a program, for nothing. Short loops of a known length still become straight lines.
#define NO_COPIES                                                                                  \
  "-fno-slp-vectorize -mllvm -unroll-runtime=false -mllvm -unroll-allow-partial=false"

const char *cg_effort(int level) {
  static const char *const options[] = {"-O0", "-O1 " NO_COPIES, "-O2 " NO_COPIES,
                                        "-O3 -fno-slp-vectorize"};
  return options[level];
}

static void add_words(const cg_tools *x, const char *text, cg_command *c) {
  char *rest = NULL;
  for (char *word = strtok_r(ir_strdup(x->a, text), " ", &rest); word;
       word = strtok_r(NULL, " ", &rest))
    cg_command_add(c, word);
}

// Plain versions take a fifth of the time of compiling, and twice as long to run when they are not optimised.
static void add_effort(const cg_tools *x, const cg_source *s, cg_command *c) {
  int level = x->b->opt_level;
  if (s->use == CG_USE_CALLS || (s->use == CG_USE_CHECK && level == 1))
    level = 0;
  add_words(x, s->use == CG_USE_STEPS || level == 0 ? cg_effort(level) : "-Oz -fno-slp-vectorize",
            c);
}

cg_command cg_compile_command(const cg_tools *x, const cg_source *s, const char *out) {
  cg_command c = {0};
  cg_command_add(&c, x->cc);
  cg_command_add(&c, "-std=gnu11");
  add_effort(x, s, &c);
  add_machine(x, &c);
  // Fused multiply-add wherever the source has a product in a sum, or nowhere: decided here, once, so
  // the binary's results are fixed. No errno, no traps: vector code may compute lanes it discards.
  cg_command_add(&c, x->b->opt_level ? "-ffp-contract=fast" : "-ffp-contract=off");
  cg_command_add(&c, "-fno-math-errno");
  cg_command_add(&c, "-fno-trapping-math");
  cg_command_add(&c, "-fno-stack-protector");
  cg_command_add(&c, "-fno-asynchronous-unwind-tables"); // nothing unwinds
  cg_command_add(&c, "-ffunction-sections");
  if (!x->t->bare)
    cg_command_add(&c, "-fno-pie"); // tables of addresses need no relocations at start
  cg_command_add(&c, "-w");
  cg_command_add(&c, "-I");
  cg_command_add(&c, x->lib);
  cg_command_add(&c, "-c");
  cg_command_add(&c, ir_format(x->a, "%s/%s", x->dir, s->name));
  cg_command_add(&c, "-o");
  cg_command_add(&c, out);
  return c;
}

const char *cg_with_suffix(const cg_tools *x, const char *source, const char *suffix) {
  const char *dot = strrchr(source, '.');
  return ir_format(x->a, "%s/%.*s%s", x->dir, (int)(dot - source), source, suffix);
}

void cg_put_source(const cg_source *s, ir_buf *key) {
  const char *end = s->text + s->len;
  for (const char *line = s->text; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    stop = stop ? stop + 1 : end;
    size_t blanks = strspn(line, " ");
    if (strncmp(line + blanks, "//", 2) != 0)
      ir_buf_write(key, line, (size_t)(stop - line));
    line = stop;
  }
}

void cg_add_compile(const cg_tools *x, cg_jobs *jobs, const cg_source *s) {
  const char *object = cg_with_suffix(x, s->name, ".o");
  cg_command c = cg_compile_command(x, s, object);
  cg_job *j = cg_add_command(x, jobs, ir_format(x->a, "compiling the generated %s", s->name),
                             cg_with_suffix(x, s->name, ".log"), &c);
  j->makes[0] = object;
}

// The program that was there stays until the new one is whole.
static bool take_place(const cg_tools *x, const char *made) {
  struct stat st;
  if (stat(made, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
    return cg_fail(x, ir_format(x->a, "linking failed: '%s' has written no program", x->cc));
  if (made == x->b->out || rename(made, x->b->out) == 0)
    return true;
  return cg_fail(x, ir_format(x->a, "cannot write '%s': %s", x->b->out, strerror(errno)));
}

// What of the runtime, and of C, a program of this machine is linked with. Of another machine whose runtime is here: all
// of it, since nobody knows what that machine has.
static void add_runtime(const cg_tools *x, cg_command *c) {
  const char *of = x->t->triple ? ir_format(x->a, "%s/%s", x->lib, x->t->triple) : x->lib;
  cg_command_add(c, ir_format(x->a, "%s/%s", of, x->t->triple ? "mlrt.o" : "libmlrt.a"));
  cg_command_add(c, ir_format(x->a, "%s/libz.a", of));
  cg_command_add(c, x->t->triple ? "-static" : "-no-pie");
  cg_command_add(c, "-Wl,--gc-sections,--build-id=none,-s,-O2,--hash-style=gnu,-z,noseparate-code");
  cg_command_add(c, "-lm");
  cg_command_add(c, "-lpthread");
}

static bool link_objects(cg_tools *x, const cg_sources *s) {
  const char *out = x->b->out;
  if (ir_is_replaceable(out))
    out = ir_temp_name(x->a, out);
  cg_command c = {0};
  cg_command_add(&c, x->cc);
  if (x->t->triple) {
    cg_command_add(&c, ir_format(x->a, "--target=%s", x->t->triple));
    cg_command_add(&c, "-fuse-ld=lld");
  }
  if (x->t->bare) {
    cg_command_add(&c, "-r");
    cg_command_add(&c, "-nostdlib");
  }
  cg_command_add(&c, "-o");
  cg_command_add(&c, out);
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == CG_SOURCE_C)
      cg_command_add(&c, cg_with_suffix(x, s->at[i].name, ".o"));
  if (x->t->cuda)
    cg_command_add(&c, ir_format(x->a, "%s/images.o", x->dir));
  if (!x->t->bare)
    add_runtime(x, &c);
  cg_jobs jobs = {0};
  cg_add_command(x, &jobs, "linking", ir_format(x->a, "%s/link.log", x->dir), &c);
  if (run_jobs(x, &jobs) && take_place(x, out))
    return true;
  if (out != x->b->out)
    unlink(out);
  return false;
}

// --- the folder of intermediate files --------------------------------------------------------
static bool make_dir(cg_tools *x) {
  cg_stopping_begin();
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
  int why = errno;
  cg_stopping_end();
  errno = why;
  return cg_fail(x, ir_format(x->a, "cannot make the folder '%s': %s%s", x->dir, strerror(errno),
                              x->b->keep_dir ? "" : "\nhelp: TMPDIR names another place for it"));
}

static void remove_files(const cg_tools *x) {
  DIR *d = opendir(x->dir);
  for (struct dirent *e; d && (e = readdir(d));)
    unlinkat(dirfd(d), e->d_name, 0);
  if (d)
    closedir(d);
  rmdir(x->dir);
}

static void remove_dir(const cg_tools *x) {
  if (!x->b->keep_dir)
    remove_files(x);
  cg_stopping_end();
}

bool cg_write(const cg_tools *x, const char *name, const char *text, size_t len) {
  const char *path = ir_format(x->a, "%s/%s", x->dir, name);
  return ir_write_file(path, text, len) ||
         cg_fail(x, ir_format(x->a, "cannot write '%s': %s", path, strerror(errno)));
}

static bool write_sources(const cg_tools *x, const cg_sources *s) {
  for (size_t i = 0; i < s->num; i++)
    if (!cg_write(x, s->at[i].name, s->at[i].text, s->at[i].len))
      return false;
  return true;
}

// Permissions of a folder do not tell: some systems of files take no others.
static bool can_write_beside(cg_tools *x, const char *out) {
  const char *trial = ir_temp_name(x->a, out);
  int file = open(trial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return false;
  close(file);
  unlink(trial);
  return true;
}

// Said before the seconds that compiling takes, and not by the linker.
static bool check_output(cg_tools *x) {
  const char *out = x->b->out;
  struct stat st;
  bool found = stat(out, &st) == 0, has_name = found || errno != ENAMETOOLONG;
  if (found && S_ISDIR(st.st_mode))
    return cg_fail(x, ir_format(x->a, "cannot write '%s': it is a folder", out));
  if (has_name && (ir_is_replaceable(out) ? can_write_beside(x, out) : access(out, W_OK) == 0))
    return true;
  return cg_fail(x, ir_format(x->a, "cannot write '%s': %s", out, strerror(errno)));
}

// --- the whole -------------------------------------------------------------------------------
static bool compile_table(const cg_tools *x, const cg_images *im) {
  cg_source table = cg_images_source(im);
  cg_jobs jobs = {0};
  cg_add_compile(x, &jobs, &table);
  return cg_write(x, table.name, table.text, table.len) && run_jobs(x, &jobs);
}

// Kernels of a GPU first, which take longest; the images' own object has to wait for all of them.
static bool compile_all(const cg_tools *x, const cg_sources *s) {
  cg_jobs jobs = {0};
  cg_images *im = x->t->cuda ? cg_images_new(x, s, CG_CUBINS | CG_PTX) : NULL;
  if (x->t->cuda && !im)
    return false;
  if (im && !cg_images_add_jobs(im, &jobs))
    return false;
  for (size_t i = 0; i < s->num; i++)
    BUG_IF(s->at[i].kind == CG_SOURCE_CUDA && !im, "%s for a CPU", s->at[i].name);
  const cg_objects *objects = cg_objects_new(x, s, &jobs);
  if (!run_jobs(x, &jobs))
    return false;
  cg_objects_finish(objects);
  return !im || (cg_images_finish(im) && cg_images_pack(im) && compile_table(x, im));
}

bool cg_compile(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                const char **why) {
  cg_tools x = {.a = a, .t = t, .b = b, .why = why};
  if (!find_tools(&x) || !check_output(&x) || !make_dir(&x))
    return false;
  bool ok = write_sources(&x, s) && compile_all(&x, s) && link_objects(&x, s);
  if (!ok)
    blame_compiler(&x);
  remove_dir(&x);
  return ok;
}

// The compiler names its temporary folder, which is another one each time: only file names stay.
static const char *without_dir(const cg_tools *x, const char *text) {
  const char *dir = ir_format(x->a, "%s/", x->dir);
  ir_buf b = ir_buf_new(x->a);
  for (const char *hit; (hit = strstr(text, dir)); text = hit + strlen(dir))
    ir_buf_write(&b, text, (size_t)(hit - text));
  ir_buf_puts(&b, text);
  return ir_buf_str(&b);
}

static void add_disassemble(const cg_tools *x, cg_jobs *jobs, const cg_source *s, bool llvm) {
  const char *text = cg_with_suffix(x, s->name, ".s");
  cg_command c = cg_compile_command(x, s, text);
  cg_command_add(&c, "-S");
  if (llvm)
    cg_command_add(&c, "-emit-llvm");
  cg_job *j = cg_add_command(x, jobs, ir_format(x->a, "compiling the generated %s", s->name),
                             cg_with_suffix(x, s->name, ".log"), &c);
  j->makes[0] = text;
}

static bool disassemble(const cg_tools *x, const cg_sources *s, bool llvm, ir_buf *out) {
  cg_jobs jobs = {0};
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == CG_SOURCE_C)
      add_disassemble(x, &jobs, &s->at[i], llvm);
  bool ok = run_jobs(x, &jobs);
  for (size_t i = 0; ok && i < s->num; i++) {
    size_t len = 0;
    const char *path = cg_with_suffix(x, s->at[i].name, ".s");
    const char *body = s->at[i].kind == CG_SOURCE_C ? ir_read_file(x->a, path, &len) : NULL;
    if (body)
      ir_buf_printf(out, "%s %s\n%s", llvm ? ";" : "#", s->at[i].name, without_dir(x, body));
    else if (s->at[i].kind == CG_SOURCE_C)
      ok = cg_fail(x, ir_format(x->a, "cannot read '%s': %s", path, strerror(errno)));
  }
  return ok;
}

static bool print_ptx(const cg_tools *x, const cg_sources *s, ir_buf *out) {
  cg_jobs jobs = {0};
  cg_images *im = cg_images_new(x, s, CG_PTX);
  if (!im || !cg_images_add_jobs(im, &jobs) || !run_jobs(x, &jobs) || !cg_images_finish(im))
    return false;
  cg_images_print_ptx(im, out);
  return true;
}

const char *cg_disassemble(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                           const char *kind, const char **why) {
  cg_tools x = {.a = a, .t = t, .b = b, .why = why};
  if (!find_tools(&x) || !make_dir(&x))
    return NULL;
  ir_buf out = ir_buf_new(a);
  bool ok = write_sources(&x, s);
  if (ok && !strcmp(kind, "ptx"))
    ok = print_ptx(&x, s, &out);
  else if (ok)
    ok = disassemble(&x, s, !strcmp(kind, "llvm"), &out);
  if (!ok)
    blame_compiler(&x);
  remove_dir(&x);
  return ok ? ir_buf_str(&out) : NULL;
}

bool cg_find_resources(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                       cg_arch_resources *out, const char **why) {
  cg_tools x = {.a = a, .t = t, .b = b, .why = why};
  if (!find_tools(&x) || !make_dir(&x))
    return false;
  cg_jobs jobs = {0};
  cg_images *im = write_sources(&x, s) ? cg_images_new(&x, s, CG_CUBINS) : NULL;
  bool ok = im && cg_images_add_jobs(im, &jobs) && run_jobs(&x, &jobs) && cg_images_finish(im) &&
            cg_images_resources(im, out);
  remove_dir(&x);
  return ok;
}
