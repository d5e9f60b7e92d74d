// test_cuda_images.c: from hand-written CUDA sources to a program that carries their images: for
// each architecture all units, in order, then PTX; the same program with the cache and without;
// what is in the cache is not compiled again; errors name the file and the architecture; clang's
// way has PTX only; the toolkit's ptxas makes cubins of PTX, where it is of NVRTC's version. The
// program checks its own images when it runs.
#include "codegen/program.h"
#include "codegen/ptxas.h"
#include "support_cuda.h"
#include "support_ir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL(name, constant)                                                                     \
  "extern \"C\" __global__ void " name "(float *p) {\n"                                            \
  "  p[threadIdx.x] = p[blockIdx.x] * " constant ";\n"                                             \
  "}\n"

// What the table must be comes as want[]; 0: as it should be.
static const char program[] =
    "#include \"mlrt.h\"\n"
    "#include <stdlib.h>\n#include <string.h>\n"
    "int uncompress(unsigned char *, unsigned long *, const unsigned char *, unsigned long);\n"
    "extern const mlrt_gpu_image mlrt_gpu_images[];\n"
    "extern const int mlrt_num_gpu_images;\n"
    "static const char *const want[] = {WANT};\n"
    "int main(void) {\n"
    "  int num = (int)(sizeof want / sizeof *want);\n"
    "  if (mlrt_num_gpu_images != num) return 1;\n"
    "  for (int i = 0; i < num; i++) {\n"
    "    const mlrt_gpu_image *m = &mlrt_gpu_images[i];\n"
    "    const char *kernel = m->unit ? \"second\" : \"first\";\n"
    "    if (strcmp(m->arch, want[i]) || m->unit != i % 2) return 2;\n"
    "    if (!m->data && (m->len || m->unit == 0 || !strcmp(m->arch, \"sm_90a\"))) return 8;\n"
    "    if (!m->data) continue;\n" // of the unit that another chip has
    "    unsigned long len = m->len;\n"
    "    unsigned char *data = malloc(len);\n"
    "    if (uncompress(data, &len, m->data, m->packed) || len != m->len) return 7;\n"
    "    if (!memmem(data, len, kernel, strlen(kernel))) return 3;\n"
    "    if (memmem(data, len, m->unit ? \"first\" : \"second\", 5 + m->unit)) return 4;\n"
    "    if (m->arch[0] == 's' && memcmp(data, \"\\177ELF\", 4)) return 5;\n"
    "    if (m->arch[0] == 'c' && strlen((const char *)data) + 1 != len) return 6;\n"
    "  }\n"
    "  return 0;\n"
    "}\n";

typedef struct build {
  ir_arena *a;
  const char *folder, *cache, *target, *want;
  const char *second; // text of the second unit
  bool one_chip;      // units need all of sm_90a: both, or the second where others are named, too
  cg_build b;
} build;

static void add(build *x, cg_sources *s, const char *name, const char *text, cg_source_kind kind) {
  cg_source one = {.name = name,
                   .text = text,
                   .len = strlen(text),
                   .kind = kind,
                   .one_chip = kind == CG_SOURCE_CUDA && x->one_chip &&
                               (!strchr(x->target, ',') || !strcmp(name, "kernels_1.cu"))};
  IR_PUSH(x->a, *s, one);
}

static bool run_build(build *x, const char **why) {
  cg_sources s = {0};
  add(x, &s, "kernels_0.cu", KERNEL("first", "2.0f"), CG_SOURCE_CUDA);
  const char *main_text =
      ir_format(x->a, "#define _GNU_SOURCE\n#define WANT %s\n%s", x->want, program);
  add(x, &s, "program.c", main_text, CG_SOURCE_C);
  add(x, &s, "kernels_1.cu", x->second, CG_SOURCE_CUDA);
  return cg_compile(x->a, &s, cg_target_find(x->a, x->target), &x->b, why);
}

static int run_program(const build *x) {
  int status = system(x->b.out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_file(const build *x, const char *folder, const char *name) {
  return access(ir_format(x->a, "%s/%s", folder, name), R_OK) == 0;
}

static build new_build(ir_arena *a, const char *folder) {
  build x = {.a = a,
             .folder = folder,
             .cache = ir_format(a, "%s/mltc", folder),
             .target = "cuda:sm_90a,sm_80",
             .want = "\"sm_80\", \"sm_80\", \"sm_90a\", \"sm_90a\", \"compute_80\", \"compute_80\"",
             .second = KERNEL("second", "3.0f")};
  x.b = (cg_build){.out = ir_format(a, "%s/trainer", folder), .opt_level = 1};
  setenv("XDG_CACHE_HOME", folder, 1);
  return x;
}

// --- NVRTC ---------------------------------------------------------------------------------------
static const char *const kept[] = {"kernels_0.cu",           "kernels_0.sm_80.cubin",
                                   "kernels_0.sm_90a.cubin", "kernels_0.compute_80.ptx",
                                   "kernels_1.sm_80.cubin",  "images.c"};

static void build_and_check(build *x, const char *keep, bool compiles) {
  const char *why = NULL;
  x->b.keep_dir = ir_format(x->a, "%s/%s", x->folder, keep);
  CHECK(run_build(x, &why), "%s: %s", keep, why);
  CHECK(run_program(x) == 0, "%s: the program says %d", keep, run_program(x));
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    CHECK(has_file(x, x->b.keep_dir, kept[i]), "%s: no %s", keep, kept[i]);
  CHECK(has_file(x, x->b.keep_dir, "kernels_1.sm_90a.log") == compiles, "%s: %s", keep,
        compiles ? "nothing was compiled" : "what the cache has was compiled again");
}

static void check_same(build *x, const char *folder, const char *other) {
  for (size_t i = 0; i < sizeof kept / sizeof *kept - 1; i++) { // images.c names the folder
    size_t n = 0, m = 0;
    char *one = ir_read_file(x->a, ir_format(x->a, "%s/%s/%s", x->folder, folder, kept[i]), &n);
    char *two = ir_read_file(x->a, ir_format(x->a, "%s/%s/%s", x->folder, other, kept[i]), &m);
    CHECK(one && two && n == m && !memcmp(one, two, n), "%s is another in %s than in %s", kept[i],
          folder, other);
  }
}

static void test_cache(build *x) {
  build_and_check(x, "cold", true);
  CHECK(support_count_files(x->cache, ".image") == 6 + 1, "%d images and objects in the cache",
        support_count_files(x->cache, ".image"));
  build_and_check(x, "warm", false);
  x->b.no_cache = true;
  build_and_check(x, "with \"out\" \\n", true);
  x->b.no_cache = false;
  check_same(x, "cold", "warm");
  check_same(x, "cold", "with \"out\" \\n");
}

// PTX of sm_86 comes with the cubin, in one call, and so does that of sm_90a, unless a text needs all of it. It is of
// the oldest one named, which runs on all newer GPUs, also on those between two that are named.
static void test_calls(build *x, const char *archs, const char *images, const char *ptx,
                       bool apart) {
  const char *why = NULL;
  x->target = ir_format(x->a, "cuda:%s", archs);
  x->want = images;
  x->b.keep_dir = ir_format(x->a, "%s/%s%s", x->folder, archs, x->one_chip ? ".chip" : "");
  CHECK(run_build(x, &why), "%s", why);
  CHECK(run_program(x) == 0, "%s: the program says %d", archs, run_program(x));
  CHECK(has_file(x, x->b.keep_dir, ir_format(x->a, "kernels_0.%s.log", ptx)) == apart,
        "%s: PTX is compiled %s", archs, apart ? "with the cubin" : "for itself");
}

#define TWO(image) "\"" image "\", \"" image "\""
static void test_all_calls(build *x) {
  test_calls(x, "sm_86", TWO("sm_86") ", " TWO("compute_86"), "compute_86", false);
  test_calls(x, "sm_90a", TWO("sm_90a") ", " TWO("compute_90"), "compute_90", false);
  x->one_chip = true;
  test_calls(x, "sm_90a", TWO("sm_90a") ", " TWO("compute_90"), "compute_90", true);
  test_calls(x, "sm_80,sm_90a", TWO("sm_80") ", " TWO("sm_90a") ", " TWO("compute_80"),
             "compute_80", false);
  CHECK(has_file(x, x->b.keep_dir, "kernels_1.sm_90a.cubin"), "nothing for the one chip");
  CHECK(!has_file(x, x->b.keep_dir, "kernels_1.sm_80.cubin"), "something for another");
  x->one_chip = false;
  test_calls(x, "sm_86,sm_89", TWO("sm_86") ", " TWO("sm_89") ", " TWO("compute_86"), "compute_86",
             false);
}

// A toolkit that has this NVRTC, and as ptxas a script that notes each call.
static void make_toolkit(build *x, const char *toolkit, const char *nvrtc, const char *script) {
  ir_arena *a = x->a;
  const char *ptxas = ir_format(a, "%s/bin/ptxas", toolkit);
  const char *text = ir_format(a, "#!/bin/sh\necho \"$@\" >> %s/calls\n%s\n", toolkit, script);
  mkdir(toolkit, 0777);
  mkdir(ir_format(a, "%s/bin", toolkit), 0777);
  mkdir(ir_format(a, "%s/lib64", toolkit), 0777);
  CHECK(symlink(nvrtc, ir_format(a, "%s/lib64/libnvrtc.so.13", toolkit)) == 0, "no link");
  ir_write_file(ptxas, text, strlen(text));
  chmod(ptxas, 0777);
}

// How often the script was called for sm_90a; -1: never at all.
static int num_assembled(build *x, const char *toolkit) {
  size_t len = 0;
  int n = 0;
  const char *calls = ir_read_file(x->a, ir_format(x->a, "%s/calls", toolkit), &len);
  for (const char *s = calls; s && (s = strstr(s, "--gpu-name=sm_90a")); s++)
    n++;
  return calls ? n : -1;
}

typedef struct toolkit {
  const char *name, *ptxas; // text of the script
  int assembled;            // cubins that it is to make
  const char *message;      // of the failure; NULL: none
  bool cached;              // what it makes: again with it, then with one of another time
} toolkit;

static void test_toolkit(build *x, const char *nvrtc, const toolkit *t) {
  const char *why = NULL, *folder = ir_format(x->a, "%s/%s", x->folder, t->name);
  make_toolkit(x, folder, nvrtc, t->ptxas);
  setenv("MLTC_NVRTC", folder, 1);
  x->target = "cuda";
  x->want = TWO("sm_80") ", " TWO("sm_90a") ", " TWO("compute_80");
  x->b.keep_dir = ir_format(x->a, "%s/kept-%s", x->folder, t->name);
  x->b.no_cache = !t->cached;
  if (t->cached) // of its own: what is in it is no cubin
    setenv("XDG_CACHE_HOME", folder, 1);
  bool ok = run_build(x, &why);
  CHECK(ok == !t->message, "%s: %s", t->name, ok ? "it compiles" : why);
  CHECK(!ok || run_program(x) == 0, "%s: the program says %d", t->name, run_program(x));
  CHECK(ok || strstr(why, t->message ? t->message : ""), "%s: the message: %s", t->name, why);
  CHECK(num_assembled(x, folder) == t->assembled, "%s: %d calls of ptxas", t->name,
        num_assembled(x, folder));
  for (int other = 0; t->cached && other < 2; other++) {
    if (other)
      utimes(ir_format(x->a, "%s/bin/ptxas", folder), (struct timeval[2]){{1, 0}, {1, 0}});
    CHECK(run_build(x, &why), "%s: %s", t->name, why);
    CHECK(num_assembled(x, folder) == (other + 1) * t->assembled, "%s: %d calls of ptxas", t->name,
          num_assembled(x, folder));
  }
}

// In a process that has not opened NVRTC yet: a library that is open keeps the path under which it was opened.
static void in_new_process(build *x, const char *nvrtc, const toolkit *t) {
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    test_toolkit(x, nvrtc, t);
    exit(support_finish(t->name) ? 1 : 0);
  }
  CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s: status %d", t->name, status);
}

// NVRTC's path, version and assembler ("" where it has none: its wheel alone), found in another process; NULL: there
// is no NVRTC.
static char *look_around(build *x, char **version, char **ptxas) {
  const char *found = ir_format(x->a, "%s/found", x->folder), *why = NULL;
  pid_t pid = fork();
  if (pid == 0) {
    const cg_nvrtc *n = support_nvrtc(x->a);
    const cg_tools tools = {.a = x->a, .b = &x->b, .dir = x->folder, .why = &why};
    const cg_ptxas *p = n ? cg_ptxas_find(&tools, cg_nvrtc_path(n), cg_nvrtc_version(n)) : NULL;
    const char *text =
        n ? ir_format(x->a, "%s\n%s\n%s", cg_nvrtc_path(n), cg_nvrtc_version(n), p ? p->path : "")
          : NULL;
    exit(text && ir_write_file(found, text, strlen(text)) ? 0 : 1);
  }
  int status = 1;
  size_t len = 0;
  char *path =
      waitpid(pid, &status, 0) == pid && status == 0 ? ir_read_file(x->a, found, &len) : NULL;
  *version = path ? strchr(path, '\n') + 1 : NULL;
  *ptxas = path ? strchr(*version, '\n') + 1 : NULL;
  if (path)
    (*version)[-1] = (*ptxas)[-1] = 0;
  return path;
}

static void test_assemblers(build *x) {
  char *version, *ptxas, *nvrtc = look_around(x, &version, &ptxas);
  if (!nvrtc)
    return;
  const char *says =
      ir_format(x->a, "echo 'Cuda compilation tools, release %s, V%s.1'", version, version);
  const toolkit other = {"other", "echo 'Cuda compilation tools, release 1.0, V1.0.1'", 0, NULL,
                         false};
  const toolkit dumb = {"dumb", "exit 1", 0, NULL, false};
  const toolkit broken = {"broken", ir_format(x->a, "%s; test $1 = --version", says), 2,
                          "compiling the generated kernels_0.cu for sm_90a failed", false};
  const toolkit empty = {
      "empty", ir_format(x->a, "%s; for to; do :; done; test $1 = --version || : >$to", says), 2,
      "/bin/ptxas' has written nothing to '", false};
  const toolkit killed = {"killed", ir_format(x->a, "%s; test $1 = --version || kill -9 $$", says),
                          2, "was ended by signal 9 (Killed)", false};
  const toolkit whole = {"whole", ir_format(x->a, "exec %s \"$@\"", ptxas), 2, NULL, false};
  // As much of a cubin as the program looks at; of PTX that is there by then.
  const toolkit fake = {"fake",
                        ir_format(x->a,
                                  "%s\ntest $1 = --version ||\n"
                                  "  { printf '\\177ELF' && cat \"$3\"; } >\"$5\"",
                                  says),
                        2, NULL, true};
  in_new_process(x, nvrtc, &fake);
  in_new_process(x, nvrtc, &other);
  in_new_process(x, nvrtc, &dumb);
  in_new_process(x, nvrtc, &broken);
  in_new_process(x, nvrtc, &empty);
  in_new_process(x, nvrtc, &killed);
  if (*ptxas)
    in_new_process(x, nvrtc, &whole);
}

static void test_error(build *x) {
  const char *why = NULL;
  x->second = "__global__ void k() { mistake; }\n";
  x->b.keep_dir = ir_format(x->a, "%s/error", x->folder);
  CHECK(!run_build(x, &why), "this compiles");
  CHECK(why && strstr(why, "compiling the generated kernels_1.cu for sm_") &&
            strstr(why, "kernels_1.cu(1): error") && strstr(why, "mistake"),
        "the message: %s", why ? why : "none");
  CHECK(has_file(x, x->b.keep_dir, "kernels_1.cu"), "the source is not kept");
}

static void test_absent(build *x) {
  const char *why = NULL, *own = getenv("MLTC_NVRTC");
  x->b.keep_dir = NULL;
  setenv("MLTC_NVRTC", "/nonexistent", 1);
  CHECK(!run_build(x, &why) && strstr(why, "MLTC_NVRTC=/nonexistent"), "the message: %s",
        why ? why : "none");
  if (own)
    setenv("MLTC_NVRTC", own, 1);
  else
    unsetenv("MLTC_NVRTC");
}

static void test_ptx(build *x) {
  cg_sources s = {0};
  const char *why = NULL;
  add(x, &s, "kernels_0.cu", KERNEL("first", "2.0f"), CG_SOURCE_CUDA);
  add(x, &s, "program.c", program, CG_SOURCE_C);
  const char *text = cg_disassemble(x->a, &s, cg_target_find(x->a, "cuda"), &x->b, "ptx", &why);
  CHECK(text && strstr(text, "// ===== kernels_0.cu for compute_80\n") &&
            strstr(text, ".entry first"),
        "%s", text ? text : why);
}

// --- clang ---------------------------------------------------------------------------------------
static void test_clang(build *x) {
  const char *why = NULL;
  x->target = "cuda:sm_80,sm_90a";
  x->want = "\"compute_80\", \"compute_80\"";
  x->second = KERNEL("second", "3.0f");
  x->b.cuda_compiler = CG_CUDA_CLANG;
  x->b.keep_dir = ir_format(x->a, "%s/clang", x->folder);
  setenv("MLTC_NVRTC", "/nonexistent", 1); // it is not asked
  CHECK(run_build(x, &why), "%s", why);
  CHECK(run_program(x) == 0, "the program says %d", run_program(x));
  size_t len = 0;
  const char *ptx =
      ir_read_file(x->a, ir_format(x->a, "%s/kernels_0.compute_80.ptx", x->b.keep_dir), &len);
  CHECK(ptx && strstr(ptx, ".version 7.0") && strstr(ptx, ".target sm_80"), "%s", ptx ? ptx : "");
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *folder = support_new_folder(a);
  build x = new_build(a, folder);
  test_assemblers(&x); // before NVRTC is opened here
  const cg_nvrtc *nvrtc = support_nvrtc(a);
  test_absent(&x);
  if (nvrtc) {
    test_cache(&x);
    test_all_calls(&x);
    test_error(&x);
    test_ptx(&x);
  }
  test_clang(&x);
  support_remove_folder(a, folder);
  int failed = support_finish("test_cuda_images");
  ir_arena_free(a);
  return failed || nvrtc ? failed : 77;
}
