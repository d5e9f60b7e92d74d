// wrapper_results.c: what each device wrapper and each function of the preludes shall compute.
//
//     wrapper_results TARGET FOLDER [KEPT]
//
// The texts that the emulator's tests run (tests/emulator/*.cu, the rows of support_prelude.h) are
// compiled by NVRTC for TARGET's architectures and run on the emulator. FOLDER gets the images,
// wrappers.bin with inputs and results, and wrappers.json, which says what is where:
// tests/bench/gpu/wrappers.py runs the images on a GPU and compares. KEPT gets the emulator's
// libraries (UNIT/k.so), for rehearsals.
//
// Both must agree to the bit, NaN aside, but for functions of float and double: there each side is
// within 2 ulp (test_cuda_prelude.c measures the emulator's), so that 4 are between them.
#include "codegen/cuda_toolchain.h"
#include "codegen/nvrtc.h"
#include "codegen/program.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_passes.h"
#include "tests/unit/support_prelude.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FLOATS = 4096, CLOSE_ULPS = 4, NORMAL_ULPS = 16, MAX_BUFFERS = 4 };

typedef struct writer {
  ir_arena *a;
  const cg_cuda *cuda;
  const cg_nvrtc *nvrtc;
  const char *folder, *kept;
  emu_machine *m;
  ir_buf data, units, cases;
} writer;

typedef struct unit { // one text
  const char *name;
  void *handle;
} unit;

typedef struct trial { // one kernel
  const char *kernel;
  int64_t blocks;
  const char *type; // of the results
  int ulps;
  const void *in[MAX_BUFFERS];
  size_t in_bytes[MAX_BUFFERS];
  int num_in;
  void *out; // filled with what it holds before the kernel
  size_t out_bytes;
} trial;

_Noreturn static void give_up(const char *what, const char *why) {
  fprintf(stderr, "wrapper_results: %s: %s\n", what, why);
  exit(1);
}

static void write_file(const writer *w, const char *name, const char *data, size_t len) {
  const char *path = ir_format(w->a, "%s/%s", w->folder, name);
  if (!ir_write_file(path, data, len))
    give_up(path, "cannot be written");
}

// --- images -----------------------------------------------------------------------------------
static cg_nvrtc_code compile(const writer *w, const char *name, const char *text,
                             const char *arch) {
  int num;
  const char *const *told = cg_nvrtc_options(&num);
  const char *options[32];
  memcpy(options, told, (size_t)num * sizeof *told);
  options[num++] = ir_format(w->a, "--gpu-architecture=%s", arch);
  cg_nvrtc_code code = {0};
  if (!cg_nvrtc_compile(w->nvrtc, w->a, name, text, options, num, &code))
    give_up(name, code.log);
  return code;
}

static void put_image(writer *w, const char *unit, const char *suffix, const char *data,
                      size_t len) {
  const char *file = ir_format(w->a, "%s.%s", unit, suffix);
  write_file(w, file, data, len);
  ir_buf_printf(&w->units, "\"%s\", ", file);
}

// A cubin of each architecture, the best first; then PTX for others, of the oldest one.
static void put_images(writer *w, const char *unit, const char *text) {
  const cg_cuda *c = w->cuda;
  cg_nvrtc_code code = {0};
  ir_buf_printf(&w->units, "%s\n  \"%s\": [", w->units.len ? "," : "", unit);
  for (int i = c->num_archs; i-- > 0;) {
    code = compile(w, ir_format(w->a, "%s.cu", unit), text, c->archs[i]);
    put_image(w, unit, ir_format(w->a, "%s.cubin", c->archs[i]), code.cubin, code.cubin_len);
  }
  put_image(w, unit, "ptx", code.ptx, code.ptx_len);
  w->units.len -= strlen(", ");
  ir_buf_puts(&w->units, "]");
}

static unit open_unit(writer *w, const char *name, const char *text) {
  const char *kept = w->kept ? ir_format(w->a, "%s/%s", w->kept, name) : NULL;
  if (kept)
    mkdir(kept, 0777);
  text = ir_format(w->a, "%s%s", cg_cuda_prelude(w->a), text);
  unit u = {name, emu_build(text, kept)};
  if (!u.handle)
    give_up(name, "does not compile for the emulator");
  put_images(w, name, text);
  return u;
}

// --- trials -----------------------------------------------------------------------------------
// Where the bytes lie in wrappers.bin; equal buffers lie there once.
static size_t place(writer *w, const void *bytes, size_t len) {
  enum { ALIGN = 256 };
  for (size_t at = 0; at + len <= w->data.len; at += ALIGN)
    if (!memcmp(w->data.text + at, bytes, len))
      return at;
  static const char zeros[ALIGN];
  size_t at = w->data.len;
  ir_buf_write(&w->data, bytes, len);
  ir_buf_write(&w->data, zeros, (ALIGN - len % ALIGN) % ALIGN);
  return at;
}

static void put_buffer(writer *w, const char *what, size_t at, size_t len) {
  ir_buf_printf(&w->cases, ", \"%s\": [%zu, %zu]", what, at, len);
}

static void run(writer *w, const unit *u, const trial *t) {
  const emu_entry *e = emu_find(u->handle, t->kernel);
  const char *args[MAX_BUFFERS + 1];
  size_t num = (size_t)t->num_in + 1;
  emu_report r;
  if (!e)
    give_up(t->kernel, "no such kernel");
  ir_buf_printf(&w->cases, "%s\n  {\"unit\": \"%s\", \"kernel\": \"%s\", \"blocks\": %lld",
                w->cases.len ? "," : "", u->name, t->kernel, (long long)t->blocks);
  ir_buf_printf(&w->cases, ", \"threads\": %d, \"shared\": %d, \"type\": \"%s\", \"ulps\": %d",
                e->threads, e->shared, t->type, t->ulps);
  emu_forget_all(w->m);
  for (int i = 0; i < t->num_in; i++) {
    args[i] = t->in[i];
    emu_buffer(w->m, t->in[i], t->in_bytes[i], false);
    put_buffer(w, ir_format(w->a, "in%d", i), place(w, t->in[i], t->in_bytes[i]), t->in_bytes[i]);
  }
  args[t->num_in] = t->out;
  emu_buffer(w->m, t->out, t->out_bytes, true);
  put_buffer(w, "before", place(w, t->out, t->out_bytes), t->out_bytes);
  if (!emu_launch(w->m, e, t->blocks, args, num * sizeof *args, NULL, &r))
    give_up(t->kernel, r.text);
  put_buffer(w, "after", place(w, t->out, t->out_bytes), t->out_bytes);
  ir_buf_puts(&w->cases, "}");
}

// --- the emulator's own kernels ------------------------------------------------------------------
typedef struct plain { // a kernel of x and y
  const char *kernel;
  int64_t blocks; // 0: not run
  const char *type;
  double least, most, step; // of x
} plain;

static void run_plain(writer *w, const unit *u, const plain *p) {
  static float x[FLOATS];
  static uint32_t y[2 * FLOATS];
  uint64_t seed = 7;
  for (int i = 0; i < FLOATS; i++)
    x[i] = (float)((int)test_random(&seed, p->least, p->most) * p->step);
  memset(y, 0, sizeof y);
  trial t = {.kernel = p->kernel, .blocks = p->blocks, .type = p->type, .num_in = 1};
  t.in[0] = x;
  t.in_bytes[0] = sizeof x;
  t.out = y;
  t.out_bytes = sizeof y;
  run(w, u, &t);
}

static bool is_listed(const plain *kernels, size_t num, const char *name) {
  for (size_t i = 0; i < num; i++)
    if (!strcmp(kernels[i].kernel, name))
      return true;
  return false;
}

// Kernels of the text that nobody has listed: on small whole numbers.
static void run_unlisted(writer *w, const unit *u, const char *text, const plain *kernels,
                         size_t num) {
  static const char head[] = "\nK_KERNEL(";
  for (const char *at = text; (at = strstr(at, head));) {
    at += strlen(head);
    const char *name = ir_format(w->a, "%.*s", (int)strcspn(at, ","), at);
    const plain p = {name, 1, "u32", 0, 8, 1};
    if (!is_listed(kernels, num, name))
      run_plain(w, u, &p);
  }
}

static void run_file(writer *w, const char *name, const plain *kernels, size_t num) {
  size_t len = 0;
  const char *path = ir_format(w->a, "tests/emulator/%s.cu", name);
  const char *text = ir_read_file(w->a, path, &len);
  if (!text)
    give_up(path, "cannot be read; run this in the source folder");
  unit u = open_unit(w, name, text);
  for (size_t i = 0; i < num; i++)
    if (kernels[i].blocks > 0)
      run_plain(w, &u, &kernels[i]);
  run_unlisted(w, &u, text, kernels, num);
}

static void run_wrappers(writer *w) {
  static const plain kernels[] = {
      {"bf16", 1, "f32", -40, 40, 0.125},
      {"f16", 1, "f32", -40, 40, 0.125},
      {"tf32", 1, "f32", -40, 40, 0.125},
      {"ldmatrix", 1, "u32", 0, 1, 1},
      {"ldmatrix_trans", 1, "u32", 0, 1, 1},
      {"ldmatrix_32", 1, "u32", 0, 1, 1},
      {"rounding", 1, "u32", -9e6, 9e6, 0.011},
      {"rounding", 1, "u32", -1e6, 1e6, 1e-11},
      {"widen", 1, "f32", 0, 1, 1},
      {"wgmma_64", 1, "f32", -40, 40, 0.125},
      {"wgmma_128", 1, "f32", -40, 40, 0.125},
      {"wgmma_192", 1, "f32", -40, 40, 0.125},
      {"wgmma_256", 1, "f32", -40, 40, 0.125},
      {"shuffle", 1, "u32", 0, 1, 1},
      {"async", 1, "f32", -1e6, 1e6, 1},
      {"places", 1, "u32", -1e6, 1e6, 1},
  };
  run_file(w, "wrappers", kernels, sizeof kernels / sizeof *kernels);
}

static void run_clean(writer *w) {
  static const plain kernels[] = {
      {"transpose", 1, "f32", 1, 1000, 1},
      {"in_warp", 4, "f32", 1, 1000, 1},
      {"pipeline", 1, "f32", 1, 1000, 1},
      {"group_1", 1, "f32", 1, 1000, 0.37},
      {"group_2", 1, "f32", 1, 1000, 0.37},
      {"group_8", 1, "f32", 1, 1000, 0.37},
      {"group_32", 1, "f32", 1, 1000, 0.37},
      {"group_64", 1, "f32", 1, 1000, 0.37},
      {"group_128", 1, "f32", 1, 1000, 0.37},
      {"group_512", 1, "f32", 1, 1000, 0.37},
      {"group_1024", 1, "f32", 1, 1e3, 0.37},
      {"small_groups", 1, "f32", 1, 1000, 0.37},
      {"wide_groups", 1, "f32", 1, 1e3, 1},
      {"nan_groups", 1, "f32", 1, 1000, 1},
      {"apart_groups", 1, "f32", 1, 1000, 0.37},
      {"poison", 0, NULL, 0, 0, 0},  // reads what nobody has written
      {"rows", 0, NULL, 0, 0, 0},    // has other arguments; all examples run such
      {"doubled", 0, NULL, 0, 0, 0}, // so has this one
  };
  run_file(w, "clean", kernels, sizeof kernels / sizeof *kernels);
}

// --- the preludes -----------------------------------------------------------------------------
static int ulps_of(const prelude_row *row, const char *type) {
  bool is_float = type[0] == 'f';
  return row->how != PRELUDE_CLOSE || !is_float ? 0
         : !strncmp(row->expr, "k_normal", 8)   ? NORMAL_ULPS
                                                : CLOSE_ULPS;
}

static void run_prelude_kernel(writer *w, const unit *u, const char *name, const char *type,
                               const char *result, int ulps, bool memory) {
  static _Alignas(16) char a[PRELUDE_BYTES], b[PRELUDE_BYTES], r[PRELUDE_BYTES];
  static uint8_t c[PRELUDE_COUNT + 64];
  uint64_t seed = 5;
  int bytes = prelude_type_bytes(type), result_bytes = prelude_type_bytes(result);
  for (int i = 0; i < PRELUDE_COUNT + 64; i++) {
    prelude_put_value(a, type, i, 0, &seed);
    prelude_put_value(b, type, i, 1, &seed);
    c[i] = test_random(&seed, 0, 1) < 0.5;
  }
  memset(r, 0x77, sizeof r);
  trial t = {.kernel = name, .blocks = prelude_blocks(memory), .type = result, .ulps = ulps};
  t.num_in = 3;
  t.in[0] = a;
  t.in[1] = b;
  t.in[2] = c;
  t.in_bytes[0] = t.in_bytes[1] = (size_t)((PRELUDE_COUNT + 64) * bytes);
  t.in_bytes[2] = sizeof c;
  t.out = r;
  t.out_bytes = (size_t)(PRELUDE_COUNT * result_bytes);
  run(w, u, &t);
}

// Sums that a compiler may fuse with a product are its choice: not compared.
static void run_prelude(writer *w) {
  unit u = open_unit(w, "prelude", prelude_kernels(w->a));
  for (int i = 0; i < prelude_num_rows; i++)
    for (const char *l = prelude_rows[i].types; *l; l++) {
      const prelude_row *row = &prelude_rows[i];
      const char *type = prelude_type_name(*l), *result = row->result ? row->result : type;
      if (row->how != PRELUDE_FUSED)
        run_prelude_kernel(w, &u, ir_format(w->a, "row_%d_%s", i, type), type, result,
                           ulps_of(row, result), false);
    }
  for (int i = 0; i < PRELUDE_NUM_TYPES; i++) {
    const char *type = prelude_types[i];
    run_prelude_kernel(w, &u, ir_format(w->a, "memory_%s", type), type, type, 0, true);
  }
}

// What row_7_f32 is, for reports.
static const char *expressions(writer *w) {
  ir_buf b = ir_buf_new(w->a);
  for (int i = 0; i < prelude_num_rows; i++)
    ir_buf_printf(&b, "%s\n  \"%s\"", i ? "," : "", prelude_rows[i].expr);
  return ir_buf_str(&b);
}

int main(int argc, char **argv) {
  ir_arena *a = ir_arena_new();
  const char *why = "usage: wrapper_results TARGET FOLDER [KEPT]";
  const cg_target *t = argc == 3 || argc == 4 ? cg_target_find(a, argv[1]) : NULL;
  if (!t || !t->cuda)
    give_up("no target for a GPU", why);
  writer w = {.a = a, .cuda = t->cuda, .folder = argv[2], .kept = argc == 4 ? argv[3] : NULL};
  w.nvrtc = cg_nvrtc_open(a, &why);
  if (!w.nvrtc)
    give_up("NVRTC", why);
  w.m = emu_new();
  w.data = ir_buf_new(a);
  w.units = ir_buf_new(a);
  w.cases = ir_buf_new(a);
  run_wrappers(&w);
  run_clean(&w);
  run_prelude(&w);
  const char *text = ir_format(a, "{\"units\": {%s},\n\"rows\": [%s],\n\"cases\": [%s]}\n",
                               ir_buf_str(&w.units), expressions(&w), ir_buf_str(&w.cases));
  write_file(&w, "wrappers.json", text, strlen(text));
  write_file(&w, "wrappers.bin", w.data.text, w.data.len);
  emu_free(w.m);
  ir_arena_free(a);
  return 0;
}
