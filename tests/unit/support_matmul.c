// support_matmul.c: random matrix products: see support_matmul.h.
#include "tests/unit/support_matmul.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const cg_target test_vectors[] = {
    [TEST_512] = {.name = "512",
                  .vector_bytes = 64,
                  .vector_registers = 32,
                  .l1_bytes = 32768,
                  .l2_bytes = 1 << 20},
    [TEST_256] = {.name = "256",
                  .vector_bytes = 32,
                  .vector_registers = 16,
                  .l1_bytes = 32768,
                  .l2_bytes = 1 << 19},
    [TEST_128] = {.name = "128",
                  .vector_bytes = 16,
                  .vector_registers = 32,
                  .l1_bytes = 65536,
                  .l2_bytes = 1 << 20},
    [TEST_TINY] = {.name = "tiny",
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .l1_bytes = 4096,
                   .l2_bytes = 40000},
};

uint64_t test_draw(uint64_t limit) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (state >> 11) % limit;
}

int64_t test_random_size(int64_t most) {
  static const int64_t common[] = {1, 2, 7, 10, 16, 31, 32, 33, 48, 64, 65, 96, 100};
  return test_draw(3) ? common[test_draw(13)] : 1 + (int64_t)test_draw((uint64_t)most);
}

mm_axes test_parts_of(int64_t size, bool two) {
  for (int64_t inner = size % 4 == 0 && test_draw(2) ? 4 : 2; two && inner < size; inner++)
    if (size % inner == 0)
      return (mm_axes){.num = 2, .size = {size / inner, inner}};
  return (mm_axes){.num = 1, .size = {size}};
}

void test_lay_out(mm_axes *const *order, int num, bool gaps, bool interleave) {
  int64_t stride = 1;
  for (int part = 1; part >= 0; part--) // interleave: all inner parts lie inside all outer ones
    for (int i = num - 1; i >= 0; i--)
      for (int j = order[i]->num - 1; j >= 0; j--) {
        bool inner = j == order[i]->num - 1;
        if (interleave ? inner != (part == 1) : part == 0)
          continue;
        order[i]->stride[j] = stride;
        stride = stride * order[i]->size[j] +
                 (gaps && test_draw(3) == 0 ? (int64_t)test_draw(5) * 8 : 0);
      }
}

mm_operand test_random_operand(int arg, const mm_problem *p, int64_t x, bool odd) {
  mm_operand o = {.arg = arg,
                  .ctype = p->ctype,
                  .elem_bytes = p->elem_bytes,
                  .offset = odd ? (int64_t)test_draw(20) : 0};
  bool two = odd && test_draw(2);
  o.batch = test_parts_of(p->batch, two), o.x = test_parts_of(x, two),
  o.k = test_parts_of(p->k, odd && test_draw(2));
  mm_axes *rows[] = {&o.batch, &o.x, &o.k}, *cols[] = {&o.batch, &o.k, &o.x};
  mm_axes *mixed[] = {&o.x, &o.batch, &o.k};
  uint64_t kind = test_draw(odd ? 3 : 2);
  test_lay_out(kind == 0 ? rows : kind == 1 ? cols : mixed, 3, odd, odd && test_draw(2));
  o.batch = mm_simplify(&o.batch), o.x = mm_simplify(&o.x), o.k = mm_simplify(&o.k);
  return o;
}

ir_band test_random_band(int64_t rows, int64_t columns) {
  int64_t x = (int64_t)test_draw((uint64_t)(rows + columns)) - rows, y = x + (int64_t)test_draw(40);
  switch (test_draw(5)) {
  case 0:
    return (ir_band){1 - rows, columns - 1}; // all
  case 1:
    return (ir_band){1 - rows, x < columns ? x : columns - 1};
  case 2:
    return (ir_band){x > -rows ? x : 1 - rows, columns - 1};
  case 3:
    return (ir_band){x > -rows ? x : 1 - rows, y < columns ? y : columns - 1};
  default:
    return test_draw(8) == 0 ? (ir_band){1, 0} : (ir_band){1 - rows, 0}; // nothing; causal
  }
}

int64_t test_extent(const mm_axes *axes) {
  int64_t e = 0;
  for (int i = 0; i < axes->num; i++)
    e += (axes->size[i] - 1) * axes->stride[i];
  return e;
}

int64_t test_at(const mm_axes *axes, int64_t index) {
  int64_t offset = 0;
  for (int i = axes->num - 1; i >= 0; index /= axes->size[i], i--)
    offset += index % axes->size[i] * axes->stride[i];
  return offset;
}

int64_t *test_offsets(ir_arena *a, const mm_axes *axes, int64_t num) {
  int64_t *offset = IR_NEW_ARRAY(a, int64_t, num + 1);
  for (int64_t i = 0; i < num; i++)
    offset[i] = test_at(axes, i);
  return offset;
}

double *test_lines(const mm_problem *p, const mm_operand *o, const char *buffer, int64_t batch,
                   int64_t first, int64_t num, test_element_fn element, const void *data) {
  double *line = malloc((size_t)(num * p->k + 1) * sizeof *line), *to = line;
  int64_t *offset = malloc((size_t)(p->k + 1) * sizeof *offset);
  BUG_IF(!line || !offset, "out of memory");
  for (int64_t k = 0; k < p->k; k++)
    offset[k] = test_at(&o->k, k);
  for (int64_t x = first; x < first + num; x++) {
    int64_t at = o->offset + test_at(&o->batch, batch) + test_at(&o->x, x);
    for (int64_t k = 0; k < p->k; k++)
      *to++ = element(data, o, buffer, at + offset[k]);
  }
  free(offset);
  return line;
}

double test_element(int elem_bytes, const char *buffer, int64_t i) {
  if (elem_bytes == 1)
    return (uint8_t)buffer[i];
  return elem_bytes == 8 ? ((const double *)(const void *)buffer)[i]
                         : (double)((const float *)(const void *)buffer)[i];
}

bool test_is_outside(ir_band b, int64_t row, int64_t column) {
  return column - row < b.lower || column - row > b.upper;
}

static void put_zero(const mm_operand *o, char *buffer, int64_t i) {
  memset(buffer + i * o->elem_bytes, 0, (size_t)o->elem_bytes);
}

void test_clear_outside(const mm_problem *p, char *const *args) {
  for (int64_t b = 0; p->bands.limited && b < p->batch; b++)
    for (int64_t k = 0; k < p->k; k++) {
      int64_t pa = p->a.offset + test_at(&p->a.batch, b) + test_at(&p->a.k, k);
      int64_t pb = p->b.offset + test_at(&p->b.batch, b) + test_at(&p->b.k, k);
      for (int64_t m = 0; m < p->m; m++)
        if (test_is_outside(p->bands.a, m, k))
          put_zero(&p->a, args[0], pa + test_at(&p->a.x, m));
      for (int64_t n = 0; n < p->n; n++)
        if (test_is_outside(p->bands.b, k, n))
          put_zero(&p->b, args[1], pb + test_at(&p->b.x, n));
    }
}

int64_t test_output_at(const test_output *o, int64_t batch, int64_t m, int64_t n) {
  return test_at(&o->batch, batch) + test_at(&o->m, m) + test_at(&o->n, n);
}

int64_t test_count_different(const mm_problem *p, const test_output *o, const char *x,
                             const char *y) {
  int64_t different = 0;
  for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
    int64_t b = i / (p->m * p->n), m = i / p->n % p->m, n = i % p->n;
    int64_t at = test_output_at(o, b, m, n) * p->elem_bytes;
    bool needed = !p->bands.limited || !test_is_outside(p->bands.c, m, n);
    different += needed && memcmp(x + at, y + at, (size_t)p->elem_bytes) != 0;
  }
  return different;
}

enum { PAGE = 4096 };

char *test_guarded(size_t bytes) {
  size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
  char *at = mmap(NULL, whole + PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  BUG_IF(at == MAP_FAILED, "mmap");
  madvise(at, whole, MADV_NOHUGEPAGE);
  mprotect(at + whole, PAGE, PROT_NONE);
  return at + whole - bytes;
}

void test_unguard(char *at, size_t bytes) {
  size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
  munmap(at + bytes - whole, whole + PAGE);
}

void test_set_output(mm_problem *p, test_output *o, bool plain) {
  o->batch = test_parts_of(p->batch, false);
  o->m = test_parts_of(p->m, !plain), o->n = test_parts_of(p->n, !plain && test_draw(2));
  mm_axes *order[] = {&o->batch, &o->m, &o->n};
  test_lay_out(order, 3, false, !plain && test_draw(2));
  p->plain = plain;
  p->c = (mm_operand){.arg = 2,
                      .ctype = p->ctype,
                      .elem_bytes = p->elem_bytes,
                      .batch = mm_simplify(&o->batch),
                      .x = mm_simplify(&o->m)};
}

void test_emit_finish(const mm_problem *p, const test_output *o, const char *name, ir_buf *out) {
  const char *c = p->ctype;
  ir_buf_printf(
      out,
      "static void %s_finish(char *const *args, const %s *tile, int64_t pitch, int64_t batch,\n"
      "    int64_t m, int64_t rows, int64_t n, int64_t cols) {\n"
      "  for (int64_t i = 0; i < rows; i++)\n"
      "    for (int64_t j = 0; j < cols; j++) {\n"
      "      const int64_t line = m + i, column = n + j;\n"
      "      ((%s *)args[2])[%s + %s + %s] = %s;\n"
      "    }\n}\n\n",
      name, c, c, mm_offset(p->arena, &o->batch, "batch"), mm_offset(p->arena, &o->m, "line"),
      mm_offset(p->arena, &o->n, "column"),
      p->plain ? "tile[i * pitch + j]" : "3 + tile[i * pitch + j] / 2");
}

void test_emit_matmul(const mm_problem *p, const mm_plan *plan, int index, ir_buf *out) {
  const char *name = ir_format(p->arena, "mm%d", index);
  mm_emit(p, plan, name, out);
  for (int i = 0; i < plan->num_phases; i++)
    ir_buf_printf(out, "void (*%s_phase_%d)(int64_t, int64_t, char *const *) = %s_%d;\n", name, i,
                  name, i);
}

void test_find_phases(const mm_plan *plan, void *library, int index, test_phase_fn *phases) {
  for (int i = 0; i < plan->num_phases; i++) {
    char name[40];
    snprintf(name, sizeof name, "mm%d_phase_%d", index, i);
    phases[i] = *(test_phase_fn *)dlsym(library, name);
  }
}

void test_run_phases(const mm_plan *plan, const test_phase_fn *phases, char *const *args,
                     int64_t piece) {
  for (int i = 0; i < plan->num_phases; i++) {
    int64_t tasks = plan->tasks[i];
    if (piece == 0)
      phases[i](0, tasks, args);
    for (int64_t end = tasks; piece > 0 && end > 0; end -= piece)
      phases[i](end < piece ? 0 : end - piece, end, args);
  }
}

double test_bf16_element(const char *buffer, int64_t i) {
  uint32_t bits = (uint32_t)((const uint16_t *)(const void *)buffer)[i] << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

void *test_library(ir_arena *a, const char *base, ir_buf *text, const char *flags) {
  const char *source = ir_format(a, "%s.c", base),
             *cc = getenv("MLTC_CC") ? getenv("MLTC_CC") : "clang";
  if (!ir_write_file(source, ir_buf_str(text), text->len))
    return NULL;
  const char *command = ir_format(a,
                                  "%s -std=gnu11 %s -Wno-psabi -fPIC -shared -Werror -Wall "
                                  "-Wno-unused-function -o %s.so %s",
                                  cc, flags, base, source);
  return system(command) == 0 ? dlopen(ir_format(a, "%s.so", base), RTLD_NOW | RTLD_LOCAL) : NULL;
}

test_wrong test_run_both(const mm_plan *plan, void *library, int index, char *const *args,
                         const size_t *bytes, test_count_fn count, const void *data) {
  enum { BACKWARDS = 3 };
  test_phase_fn phases[CG_MAX_PHASES];
  int64_t wrong[2];
  test_find_phases(plan, library, index, phases);
  for (int i = 0; i < 2; i++) {
    memset(args[2], 0xff, bytes[2]), memset(args[3], 0xff, bytes[3]);
    test_run_phases(plan, phases, args, i ? BACKWARDS : 0);
    wrong[i] = count(data, args);
  }
  return (test_wrong){wrong[0], wrong[1]};
}
