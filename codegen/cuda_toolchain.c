// cuda_toolchain.c: see cuda_toolchain.h.
#include "codegen/cuda_toolchain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "codegen/cuda_clang.h"
#include "codegen/nvrtc.h"

// Everything that NVRTC is told. Products in sums are fused, as on the CPU; division, roots and
// small numbers are exact: no fast math. What spills says so in the log.
static const char *const options[] = {
    "-std=c++17",          "-default-device",
    "--fmad=true",         "--ftz=false",
    "--prec-div=true",     "--prec-sqrt=true",
    "--diag-suppress=177", "--ptxas-options=--warn-on-spills",
};
enum { NUM_OPTIONS = sizeof options / sizeof *options };

const char *const *cg_nvrtc_options(int *num) {
  *num = NUM_OPTIONS;
  return options;
}

typedef struct image image;
struct image {
  int unit;
  const char *arch; // "sm_90a", "compute_80"
  bool ptx;
  const char *from;   // what the compiler is told: "sm_90a", "sm_80" (it gives PTX on its way)
  const image *of;    // the PTX that ptxas makes it of; NULL: a compiler makes it
  const char *path;   // of the file in the folder of intermediate files
  ir_buf key;         // of the cache
  const char *data;   // NULL: not there yet
  const char *z;      // the same as the trainer carries it
  size_t len, packed; // bytes of both
  size_t job;         // that makes it, where it is not there
};

struct cg_images {
  const cg_tools *x;
  const cg_nvrtc *nvrtc;      // NULL:
  const cg_cuda_clang *clang; // this one is used
  const cg_ptxas *ptxas;      // NULL: there is none, or no use for it
  IR_VEC(const cg_source *) units;
  IR_VEC(image *) all; // in the table's order
};

// --- images packed, as the trainer carries them: PTX is text, and cubins repeat themselves ---------
enum { PACK_LEVEL = 5 }; // 7 takes three times as long for 3% less

// The 0 behind PTX goes with it (ir_read_file puts one behind everything).
static uLong carried_len(const image *one) {
  return (uLong)one->len + one->ptx;
}

static void pack(const cg_images *im, image *one) {
  uLongf packed = compressBound(carried_len(one));
  char *z = ir_alloc(im->x->a, packed);
  int status =
      compress2((Bytef *)z, &packed, (const Bytef *)one->data, carried_len(one), PACK_LEVEL);
  BUG_IF(status != Z_OK, "zlib says %d", status);
  one->z = z;
  one->packed = packed;
}

// The cache has them packed, behind the bytes that they are unpacked: most of them go into a program as they are.
static void put_into_cache(const cg_images *im, image *one) {
  const uint64_t len = one->len;
  ir_buf entry = ir_buf_new(im->x->a);
  pack(im, one);
  ir_buf_write(&entry, (const char *)&len, sizeof len);
  ir_buf_write(&entry, one->z, one->packed);
  cg_cache_put(&im->x->cache, &one->key, ir_buf_str(&entry), entry.len);
}

static void take_from_cache(const cg_images *im, image *one) {
  size_t size = 0;
  uint64_t len;
  const char *entry = cg_cache_get(&im->x->cache, &one->key, &size);
  if (!entry || size < sizeof len)
    return;
  memcpy(&len, entry, sizeof len);
  one->len = len;
  uLongf bytes = carried_len(one);
  char *data = ir_alloc(im->x->a, bytes + 1);
  const char *z = entry + sizeof len;
  size_t packed = size - sizeof len;
  if (uncompress((Bytef *)data, &bytes, (const Bytef *)z, packed) != Z_OK ||
      bytes != carried_len(one))
    return;
  one->data = data;
  one->z = z;
  one->packed = packed;
}

// --- what to make --------------------------------------------------------------------------------
// "compute_90" of "sm_90a", and of "compute_90".
static const char *virtual_arch(ir_arena *a, const char *arch) {
  const char *number = strchr(arch, '_') + 1;
  return ir_format(a, "compute_%.*s", (int)strspn(number, "0123456789"), number);
}

static bool is_for_one_chip(const char *arch) {
  return arch[strlen(arch) - 1] == 'a';
}

// What NVRTC is told where a cubin of `arch` is wanted: sm_90a is sm_90 to a text that does not tell them apart.
static const char *cubin_from(const cg_images *im, int unit, const char *arch) {
  bool all_of_it = im->units.at[unit]->one_chip || !is_for_one_chip(arch);
  return all_of_it ? arch : ir_format(im->x->a, "%.*s", (int)strlen(arch) - 1, arch);
}

// See the head of cuda_toolchain.h. The PTX that NVRTC makes on its way to sm_80 is not to the byte
// what it makes for compute_80: it always comes from the former, whoever asks for it.
static const char *ptx_from(const cg_images *im, int unit) {
  const char *oldest = cubin_from(im, unit, im->x->t->cuda->archs[0]);
  bool by_itself = im->clang || is_for_one_chip(oldest);
  return by_itself ? virtual_arch(im->x->a, oldest) : oldest;
}

static const char *identity(const cg_images *im) {
  return im->clang ? im->clang->identity : cg_nvrtc_identity(im->nvrtc);
}

// Everything that the bytes of an image depend on. The name is in it because compilers put it into
// symbols.
static ir_buf make_key(const cg_images *im, const image *one) {
  const cg_source *s = im->units.at[one->unit];
  ir_buf key = ir_buf_new(im->x->a);
  ir_buf_printf(&key, "%s, packed\n%s from %s\n%s\n", identity(im), one->arch, one->from, s->name);
  if (one->of)
    ir_buf_printf(&key, "by %s\n", im->ptxas->identity);
  for (int i = 0; !im->clang && i < NUM_OPTIONS; i++)
    ir_buf_printf(&key, "%s ", options[i]);
  if (s->in_order && !im->clang)
    ir_buf_puts(&key, CG_NVRTC_IN_ORDER);
  if (im->clang)
    cg_cuda_clang_put_key(&key);
  ir_buf_puts(&key, "\n");
  cg_put_source(s, &key);
  return key;
}

static image *new_image(const cg_images *im, image i) {
  ir_arena *a = im->x->a;
  image *one = IR_NEW(a, image);
  *one = i;
  one->key = make_key(im, one);
  one->path = cg_with_suffix(im->x, im->units.at[one->unit]->name,
                             ir_format(a, ".%s.%s", one->arch, one->ptx ? "ptx" : "cubin"));
  take_from_cache(im, one);
  return one;
}

// Programs for several chips have kernels of one chip beside those that all have. `arch` NULL: PTX.
static bool is_for_another(const cg_images *im, int unit, const char *arch) {
  bool another = !arch || !is_for_one_chip(arch);
  return im->units.at[unit]->one_chip && im->x->t->cuda->own && another;
}

static image *new_ptx(const cg_images *im, int unit) {
  const char *from = ptx_from(im, unit);
  return new_image(
      im, (image){.unit = unit, .arch = virtual_arch(im->x->a, from), .ptx = true, .from = from});
}

// Of the architecture `which` of the list.
static image *new_cubin(const cg_images *im, int unit, int which, const image *ptx) {
  const char *arch = im->x->t->cuda->archs[which];
  const image *of = which > 0 && im->ptxas ? ptx : NULL;
  const char *from = of ? ptx->from : cubin_from(im, unit, arch);
  return new_image(im, (image){.unit = unit, .arch = arch, .from = from, .of = of});
}

static void add_images(cg_images *im, unsigned kinds) {
  const cg_cuda *c = im->x->t->cuda;
  bool with_ptx = kinds & CG_PTX || im->ptxas;
  image **ptx = IR_NEW_ARRAY(im->x->a, image *, im->units.num);
  for (size_t u = 0; with_ptx && u < im->units.num; u++)
    ptx[u] = is_for_another(im, (int)u, NULL) ? NULL : new_ptx(im, (int)u);
  for (int i = 0; kinds & CG_CUBINS && !im->clang && i < c->num_archs; i++)
    for (size_t u = 0; u < im->units.num; u++)
      if (!is_for_another(im, (int)u, c->archs[i]))
        IR_PUSH(im->x->a, im->all, new_cubin(im, (int)u, i, ptx[u]));
  for (size_t u = 0; with_ptx && u < im->units.num; u++)
    if (ptx[u])
      IR_PUSH(im->x->a, im->all, ptx[u]);
}

// --- compilers -----------------------------------------------------------------------------------
static const char *nvrtc_program(const cg_tools *x) {
  return ir_format(x->a, "%s/mltc-nvrtc", x->lib);
}

static bool open_nvrtc(cg_images *im, unsigned kinds) {
  const cg_tools *x = im->x;
  if (access(nvrtc_program(x), X_OK) != 0)
    return cg_fail(x, ir_format(x->a,
                                "%s is not there: build the target mltc-nvrtc, or install with "
                                "cmake --install",
                                nvrtc_program(x)));
  im->nvrtc = cg_nvrtc_open(x->a, x->why);
  for (int i = 0; im->nvrtc && i < x->t->cuda->num_archs; i++) {
    const char *arch = x->t->cuda->archs[i];
    if (!cg_nvrtc_knows(im->nvrtc, atoi(arch + 3)))
      return cg_fail(x,
                     ir_format(x->a, "NVRTC %s makes no code for %s; it can: %s",
                               cg_nvrtc_version(im->nvrtc), arch, cg_nvrtc_all(im->nvrtc, x->a)));
  }
  if (im->nvrtc && x->t->cuda->num_archs > 1 && kinds & CG_CUBINS)
    im->ptxas = cg_ptxas_find(x, cg_nvrtc_path(im->nvrtc), cg_nvrtc_version(im->nvrtc));
  return im->nvrtc != NULL;
}

cg_images *cg_images_new(const cg_tools *x, const cg_sources *s, unsigned kinds) {
  cg_images *im = IR_NEW(x->a, cg_images);
  *im = (cg_images){.x = x};
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == CG_SOURCE_CUDA)
      IR_PUSH(x->a, im->units, &s->at[i]);
  if (x->b->cuda_compiler == CG_CUDA_CLANG)
    im->clang = cg_cuda_clang_open(x);
  if (!im->clang && (x->b->cuda_compiler == CG_CUDA_CLANG || !open_nvrtc(im, kinds)))
    return NULL;
  add_images(im, kinds);
  return im;
}

// --- compiling -----------------------------------------------------------------------------------
static cg_command nvrtc_command(const cg_images *im, const cg_source *s, const char *from,
                                const image *cubin, const image *ptx) {
  const cg_tools *x = im->x;
  cg_command c = {0};
  cg_command_add(&c, nvrtc_program(x));
  cg_command_add(&c, ir_format(x->a, "%s/%s", x->dir, s->name));
  if (cubin)
    cg_command_add(&c, ir_format(x->a, "--cubin=%s", cubin->path));
  if (ptx)
    cg_command_add(&c, ir_format(x->a, "--ptx=%s", ptx->path));
  cg_command_add(&c, ir_format(x->a, "--gpu-architecture=%s", from));
  for (int i = 0; i < NUM_OPTIONS; i++)
    cg_command_add(&c, options[i]);
  if (s->in_order)
    cg_command_add(&c, CG_NVRTC_IN_ORDER);
  return c;
}

// Its place in `jobs`. `two`: what it makes beside, or NULL.
static size_t add_job(const cg_images *im, cg_jobs *jobs, const image *one, const image *two,
                      size_t after, const cg_command *c) {
  const cg_tools *x = im->x;
  const cg_source *s = im->units.at[one->unit];
  const char *log = cg_with_suffix(x, s->name, ir_format(x->a, ".%s.log", one->arch));
  const char *what = ir_format(x->a, "compiling the generated %s for %s", s->name, one->arch);
  cg_job *j = cg_add_command(x, jobs, what, log, c);
  j->after = after;
  j->makes[0] = one->path;
  j->makes[1] = two ? two->path : NULL;
  return jobs->num - 1;
}

// One call, which makes one image or two.
static void add_call(const cg_images *im, cg_jobs *jobs, image *cubin, image *ptx) {
  image *first = cubin ? cubin : ptx, *second = cubin ? ptx : NULL;
  const cg_source *s = im->units.at[first->unit];
  cg_command c = im->clang ? cg_cuda_clang_command(im->x, s->name, first->arch, ptx->path)
                           : nvrtc_command(im, s, first->from, cubin, ptx);
  first->job = add_job(im, jobs, first, second, CG_AT_ONCE, &c);
  if (second)
    second->job = first->job;
}

// The other image that the same call makes, where that is still to be made.
static image *beside(const cg_images *im, const image *one) {
  for (size_t i = 0; i < im->all.num; i++) {
    image *other = im->all.at[i];
    if (other != one && other->unit == one->unit && !other->data && !other->of &&
        !strcmp(other->from, one->from))
      return other;
  }
  return NULL;
}

static void add_calls(const cg_images *im, cg_jobs *jobs) {
  for (size_t i = 0; i < im->all.num; i++) {
    image *one = im->all.at[i];
    if (one->data || one->of)
      continue;
    if (!one->ptx)
      add_call(im, jobs, one, beside(im, one));
    else if (!beside(im, one))
      add_call(im, jobs, NULL, one);
  }
}

// After the call that makes the PTX, or of a file that is there.
static void add_assemblies(const cg_images *im, cg_jobs *jobs) {
  for (size_t i = 0; i < im->all.num; i++) {
    image *one = im->all.at[i];
    if (one->data || !one->of)
      continue;
    cg_command c = cg_ptxas_command(im->ptxas, im->x->a, one->arch, one->of->path, one->path,
                                    im->units.at[one->unit]->in_order);
    one->job = add_job(im, jobs, one, NULL, one->of->data ? CG_AT_ONCE : one->of->job, &c);
  }
}

static bool write_file(const cg_images *im, const char *path, const char *data, size_t len) {
  return ir_write_file(path, data, len) ||
         cg_fail(im->x, ir_format(im->x->a, "cannot write '%s': %s", path, strerror(errno)));
}

bool cg_images_add_jobs(cg_images *im, cg_jobs *jobs) {
  for (size_t i = 0; i < im->all.num; i++) {
    const image *one = im->all.at[i];
    if (one->data && im->x->b->verbose)
      fprintf(stderr, "+ from the cache: %s\n", one->path);
    if (one->data && !write_file(im, one->path, one->data, one->len))
      return false;
  }
  add_calls(im, jobs);
  add_assemblies(im, jobs);
  return true;
}

bool cg_images_finish(cg_images *im) {
  const cg_tools *x = im->x;
  bool added = false;
  for (size_t i = 0; i < im->all.num; i++) {
    image *one = im->all.at[i];
    if (one->data)
      continue;
    one->data = ir_read_file(x->a, one->path, &one->len);
    if (!one->data)
      return cg_fail(x, ir_format(x->a, "cannot read '%s': %s", one->path, strerror(errno)));
    put_into_cache(im, one);
    added = true;
  }
  if (added)
    cg_cache_trim(&x->cache, CG_CACHE_BYTES);
  return true;
}

bool cg_images_pack(cg_images *im) {
  for (size_t i = 0; i < im->all.num; i++) {
    image *one = im->all.at[i];
    if (!one->z)
      pack(im, one);
    if (!write_file(im, ir_format(im->x->a, "%s.z", one->path), one->z, one->packed))
      return false;
  }
  return true;
}

// --- results -------------------------------------------------------------------------------------
// A path in a string of the assembler.
static const char *quoted(ir_arena *a, const char *path) {
  ir_buf b = ir_buf_new(a);
  for (const char *s = path; *s; s++)
    ir_buf_printf(&b, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
  return ir_buf_str(&b);
}

static void put_bytes(const cg_images *im, ir_buf *b) {
  ir_arena *a = im->x->a;
  ir_buf_puts(b, "__asm__(\".section .rodata.mltc_images, \\\"a\\\", @progbits\\n\"\n");
  for (size_t i = 0; i < im->all.num; i++) {
    const image *one = im->all.at[i];
    ir_buf_printf(b, "        \".balign 64\\nmltc_image_%zu:\\n\"\n        ", i);
    cg_put_string(b, ir_format(a, ".incbin \"%s.z\"\n", quoted(a, one->path)));
    ir_buf_puts(b, "\n");
  }
  ir_buf_puts(b, "        \".text\\n\");\n\n");
}

// Those of one architecture: all units in order, from `first` on. A unit that has none is of kernels for another chip.
static void put_arch_rows(const cg_images *im, size_t first, ir_buf *b) {
  const char *arch = im->all.at[first]->arch;
  size_t i = first;
  for (int u = 0; u < (int)im->units.num; u++) {
    const image *one = i < im->all.num ? im->all.at[i] : NULL;
    if (one && one->unit == u && !strcmp(one->arch, arch))
      ir_buf_printf(b, "    {\"%s\", %d, mltc_image_%zu, %zu, %zu},\n", arch, u, i++, one->packed,
                    one->len + one->ptx);
    else
      ir_buf_printf(b, "    {\"%s\", %d, 0, 0, 0},\n", arch, u);
  }
}

// Each architecture has the first unit, if any: what one chip has alone stands behind what all have.
static void put_table(const cg_images *im, ir_buf *b) {
  size_t archs = 0;
  for (size_t i = 0; i < im->all.num; i++)
    ir_buf_printf(b, "extern const unsigned char mltc_image_%zu[];\n", i);
  ir_buf_puts(b, "\nconst mlrt_gpu_image mlrt_gpu_images[] = {\n");
  for (size_t i = 0; i < im->all.num; i++)
    if (im->all.at[i]->unit == 0) {
      put_arch_rows(im, i, b);
      archs++;
    }
  ir_buf_printf(b, "};\nconst int mlrt_num_gpu_images = %zu;\n", archs * im->units.num);
}

cg_source cg_images_source(const cg_images *im) {
  ir_buf b = ir_buf_new(im->x->a);
  ir_buf_puts(&b, "// The compiled kernels, carried in the program.\n#include \"mlrt.h\"\n\n");
  put_bytes(im, &b);
  put_table(im, &b);
  return (cg_source){.name = "images.c", .text = ir_buf_str(&b), .len = b.len, .use = CG_USE_ONCE};
}

void cg_images_print_ptx(const cg_images *im, ir_buf *out) {
  for (size_t i = 0; i < im->all.num; i++) {
    const image *one = im->all.at[i];
    ir_buf_printf(out, "// ===== %s for %s\n%s", im->units.at[one->unit]->name, one->arch,
                  one->data);
  }
}

bool cg_images_resources(const cg_images *im, cg_arch_resources *out) {
  const cg_tools *x = im->x;
  for (size_t i = 0; i < im->all.num; i++) {
    const image *one = im->all.at[i];
    const char *why = "";
    cg_resource_list of_unit = {0};
    int arch = 0;
    while (!one->ptx && strcmp(x->t->cuda->archs[arch], one->arch) != 0)
      arch++;
    if (!one->ptx && !cg_cubin_resources(x->a, one->data, one->len, &of_unit, &why))
      return cg_fail(x, ir_format(x->a, "%s: %s", one->path, why));
    for (size_t j = 0; j < of_unit.num; j++)
      IR_PUSH(x->a, out->of[arch], of_unit.at[j]);
  }
  return true;
}
