// test_cuda_scatter.c: SCATTER kernels for a GPU, by walking and by sorting: on the emulator, in
// several orders of blocks and threads, compared with the oracle; and the plans of real sizes.
// `-v [NAME]` prints the CUDA text.
#include "codegen/cuda_scatter.h"
#include "codegen/program.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_kernels.h"

#include <string.h>

// Indices from their numbers i: i * times % modulo + plus.
#define INDEX(dtype, n, times, modulo, plus)                                                       \
  "%c = iota {axis=0} : i64[" n "]\n%t = const {value=" times "} : i64[" n "]\n"                   \
  "%m = const {value=" modulo "} : i64[" n "]\n%o = const {value=" plus "} : i64[" n "]\n"         \
  "%p = mul %c, %t : i64[" n "]\n%q = mod %p, %m : i64[" n "]\n%r = add %q, %o : i64[" n "]\n"     \
  "%i = cast %r : " dtype "[" n "]\n"
#define SCATTER(dtype, n, shape, table)                                                            \
  "%u = input : " dtype "[" n "," shape "]\n%s = scatter_add %i, %u : " dtype "[" table "," shape  \
  "]\nresult output s = %s"

static const test_case cases[] = {
    {"few", NULL, INDEX("i32", "20", "7", "5", "0") SCATTER("f32", "20", "12", "9"), 0},
    {"few, in two tiles", NULL, INDEX("i32", "60", "7", "50", "0") SCATTER("f32", "60", "12", "90"),
     0},
    {"one pass", NULL, INDEX("i32", "700", "37", "65", "0") SCATTER("f32", "700", "16", "65"), 0},
    {"a table of one row", NULL, INDEX("i32", "500", "1", "3", "0") SCATTER("f32", "500", "8", "1"),
     0},
    {"two passes, three chunks", NULL,
     INDEX("u16", "2500", "7919", "1201", "0") SCATTER("f32", "2500", "8", "1201"), 0},
    {"three passes, rows of one element", NULL,
     INDEX(
         "i64", "1100", "48611", "70001",
         "0") "%u = input : f32[1100]\n%s = scatter_add %i, %u : f32[70001]\nresult output s = %s",
     0},
    {"all indices equal", NULL,
     INDEX("i32", "3000", "1", "1", "7") SCATTER("f32", "3000", "8", "11"), 0},
    {"long rows between short ones", NULL,
     "%x = iota {axis=0} : i32[2000]\n%y = const {value=300} : i32[2000]\n"
     "%z = const {value=1500} : i32[2000]\n%a = max %x, %y : i32[2000]\n"
     "%i = min %a, %z : i32[2000]\n" SCATTER("f32", "2000", "20", "2000"),
     0},
    {"indices beyond the table", NULL,
     INDEX("i32", "400", "31", "90", "-20") SCATTER("f32", "400", "12", "50"), 0},
    {"indices beyond, unsigned", NULL,
     INDEX("u32", "400", "31", "90", "4294967200") SCATTER("f32", "400", "4", "50"), 0},
    {"odd columns", NULL, INDEX("u8", "600", "11", "130", "0") SCATTER("f32", "600", "7", "200"),
     0},
    {"more columns than threads", NULL,
     INDEX("i32", "300", "11", "40", "0") SCATTER("f32", "300", "1100", "60"), 0},
    {"odd columns, more than threads", NULL,
     INDEX("i32", "300", "11", "20", "0") SCATTER("f32", "300", "271", "30"), 0},
    {"doubles", NULL, INDEX("i32", "500", "13", "9", "0") SCATTER("f64", "500", "8", "9"), 0},
    {"integers", NULL, INDEX("i32", "500", "13", "9", "0") SCATTER("i32", "500", "8", "9"), 0},
    {"long integers, odd", NULL,
     INDEX("i32", "500", "13", "9", "0") SCATTER("i64", "500", "3", "9"), 0},
    {"small integers", NULL, INDEX("i32", "500", "13", "9", "0") SCATTER("u8", "500", "8", "9"), 0},
    {"small integers, odd", NULL,
     INDEX("i32", "500", "13", "9", "0") SCATTER("i8", "500", "5", "9"), 0},
    {"views of both", NULL,
     "%x = input : i32[20,40]\n%i0 = transpose %x {perm=[1,0]} : i32[40,20]\n"
     "%i = slice %i0 {start=[1,0], stop=[40,20], step=[2,1]} : i32[20,20]\n"
     "%y = input : f32[12,20,20]\n%u = transpose %y {perm=[1,2,0]} : f32[20,20,12]\n"
     "%s = scatter_add %i, %u : f32[6,12]\nresult output s = %s",
     0},
    {"rows of two dimensions, a slice", NULL,
     "%i = input : i32[12,40]\n%y = input : f32[12,44,3,8]\n"
     "%u = slice %y {start=[0,4,0,0], stop=[12,44,3,8], step=[1,1,1,1]} : f32[12,40,3,8]\n"
     "%s = scatter_add %i, %u : f32[7,3,8]\nresult output s = %s",
     0},
    {"not at whole vectors", NULL,
     "%i = input : i32[300]\n%y = input : f32[300,9]\n"
     "%u = slice %y {start=[0,1], stop=[300,9], step=[1,1]} : f32[300,8]\n"
     "%s = scatter_add %i, %u : f32[70,8]\nresult output s = %s",
     0},
    {"counts", NULL,
     "%i = input : i32[900]\n%u = const {value=1} : f32[900,4]\n"
     "%s = scatter_add %i, %u : f32[6,4]\nresult output s = %s",
     0},
    {"indices that are counted", NULL,
     "%i = iota {axis=1} : i32[8,100]\n%u = input : f32[8,100,12]\n"
     "%s = scatter_add %i, %u : f32[100,12]\nresult output s = %s",
     0},
    {"rows that are fetched, sorted", NULL,
     INDEX("i32", "700", "37", "65", "0") "%j = input : i32[700]\n%x = input : f32[40,16]\n"
                                          "%u = gather %x, %j : f32[700,16]\n%s = scatter_add %i, "
                                          "%u : f32[65,16]\nresult output s = %s",
     0},
    {"rows that are fetched, walked, odd", NULL,
     INDEX("i32", "60", "7", "50", "0") "%j = input : i32[60]\n%x = input : f32[40,7]\n"
                                        "%u = gather %x, %j : f32[60,7]\n%s = scatter_add %i, %u : "
                                        "f32[90,7]\nresult output s = %s",
     0},
    {"rows that are fetched of a part, by views", NULL,
     "%i0 = input : i32[20,30]\n%i = transpose %i0 {perm=[1,0]} : i32[30,20]\n"
     "%j0 = input : i32[20,30]\n%j = transpose %j0 {perm=[1,0]} : i32[30,20]\n%y = input : "
     "f32[44,9]\n"
     "%x = slice %y {start=[4,1], stop=[44,9], step=[1,1]} : f32[40,8]\n"
     "%u = gather %x, %j : f32[30,20,8]\n%s = scatter_add %i, %u : f32[70,8]\nresult output s = %s",
     0},
    {"a row for all", NULL,
     "%i = input : i32[500]\n%y = input : f32[1,24]\n%u = broadcast %y : f32[500,24]\n"
     "%s = scatter_add %i, %u : f32[5,24]\nresult output s = %s",
     1e-5},
};

static const char *with_max(ir_arena *a, const char *text) {
  static const char add[] = "scatter_add";
  ir_buf b = ir_buf_new(a);
  for (const char *at; (at = strstr(text, add)); text = at + strlen(add))
    ir_buf_printf(&b, "%.*sscatter_max", (int)(at - text), text);
  ir_buf_puts(&b, text);
  return ir_buf_str(&b);
}

// The same cases of scatter_max, whose results have no rounding.
static void check_max(ir_arena *a, const cg_target *t, const char *only, bool show) {
  enum { NUM = sizeof cases / sizeof *cases };
  test_case largest[NUM];
  for (size_t i = 0; i < NUM; i++)
    largest[i] = (test_case){ir_format(a, "max, %s", cases[i].what), cases[i].states,
                             with_max(a, cases[i].body), 1e-30};
  test_run_cases(largest, NUM, t, only, show);
}

// --- the order of sums -----------------------------------------------------------------------
enum { ORDER_INDICES = 2300, ORDER_ROWS = 300 }; // at most

typedef struct order_run {
  int32_t index[ORDER_INDICES];
  float update[4 * ORDER_INDICES], table[4 * ORDER_ROWS];
  _Alignas(64) char workspace[1 << 18];
} order_run;

static void run_sorting(ir_arena *a, const cg_kernel *g, order_run *r) {
  ir_buf text = ir_buf_new(a);
  ir_buf_puts(&text, cg_cuda_prelude(a));
  cuda_scatter_emit(g, "k", &text);
  void *lib = emu_build(ir_buf_str(&text), NULL);
  emu_machine *m = emu_new();
  char *args[] = {(char *)r->index, (char *)r->update, (char *)r->table, r->workspace};
  const size_t bytes[] = {sizeof r->index, sizeof r->update, sizeof r->table, sizeof r->workspace};
  for (int i = 0; i < 4; i++)
    emu_buffer(m, args[i], bytes[i], i > 1);
  for (int p = 0; lib && p < g->num_phases; p++) {
    emu_report report;
    if (!emu_launch(m, emu_find(lib, ir_format(a, "k_%d", p)), g->tasks[p], args, sizeof args, NULL,
                    &report))
      test_fail("order of sums: %s", report.text);
  }
  emu_free(m);
}

// Equal rows keep their order; rows inside a piece are summed as a loop over the indices does it.
static void check_order(const cg_target *t, int indices) {
  static order_run r;
  ir_arena *a = ir_arena_new();
  const test_case c = {"order", NULL,
                       ir_format(a,
                                 "%%i = input : i32[%d]\n%%u = input : f32[%d,4]\n"
                                 "%%s = scatter_add %%i, %%u : f32[300,4]\nresult output s = %%s",
                                 indices, indices),
                       0};
  const ir_func *f = test_case_module(a, &c)->funcs.at[0];
  const cg_kernel *g = test_scheduled(a, f->kernels.at[0], f, t);
  const cuda_scatter *p = g->schedule;
  uint64_t seed = 5;
  for (int i = 0; i < indices; i++)
    r.index[i] = (int32_t)test_random(&seed, 0, ORDER_ROWS);
  for (int i = 0; i < 4 * indices; i++)
    r.update[i] = (float)test_random(&seed, -1, 1);
  BUG_IF(p->workspace > (int64_t)sizeof r.workspace || !p->sort, "not what this test is for");
  run_sorting(a, g, &r);
  const int32_t *rows =
      (const int32_t *)(const void *)(r.workspace + p->sorted[(p->passes - 1) % 2]);
  const int32_t *places = rows + (indices + 15) / 16 * 16;
  int whole = 0;
  for (int i = 0, next = 0; i < indices; i = next) {
    float sum = 0;
    for (next = i; next < indices && rows[next] == rows[i]; next++) {
      sum += r.update[4 * places[next]];
      if (r.index[places[next]] != rows[i] || (next > i && places[next] < places[next - 1]) ||
          (next == i && i > 0 && rows[i] < rows[i - 1]))
        test_fail("order of sums: position %d is not where it belongs", next);
    }
    if (i / p->piece != (next - 1) / p->piece)
      continue;
    whole++;
    if (memcmp(&sum, &r.table[4 * rows[i]], sizeof sum))
      test_fail("row %d is not the sum in the order of its indices", rows[i]);
  }
  if (whole < 100)
    test_fail("only %d rows lie inside a piece", whole);
  ir_arena_free(a);
}

// --- plans of real sizes ---------------------------------------------------------------------
static cuda_scatter plan_of(int64_t indices, int64_t rows, int64_t columns, const cg_target *t) {
  cuda_scatter p = {.table_rows = rows,
                    .stored_rows = rows,
                    .columns = columns,
                    .indices = indices,
                    .element_bytes = 4,
                    .wide = columns % SCATTER_LANES == 0};
  cuda_scatter_plan(&p, t->cuda);
  return p;
}

static void print_plan(const cuda_scatter *p) {
  printf("%lld indices, %lld rows of %lld: %s; walking %.0f us, sorting %.0f us: %d passes by %d "
         "bits, %d launches, %lld chunks of %lld, %lld pieces of %lld, %d threads, workspace %.1f "
         "MB\n",
         (long long)p->indices, (long long)p->table_rows, (long long)p->columns,
         p->sort ? "sorting" : "walking", p->walk_us, p->sort_us, p->passes, p->bits,
         p->sort_launches, (long long)p->chunks, (long long)p->chunk, (long long)p->pieces,
         (long long)p->piece, p->sum_threads, (double)p->workspace / 1e6);
}

static bool covers(int64_t parts, int64_t part, int64_t size) {
  return parts * part >= size && (parts - 1) * part < size;
}

static bool holds_together(const cuda_scatter *p) {
  int64_t list = p->indices * p->place_bytes, table = p->table_rows * p->columns * p->element_bytes;
  int64_t update = p->indices * p->columns * p->element_bytes;
  bool ok = covers(p->chunks, p->chunk, p->indices) && covers(p->pieces, p->piece, p->indices);
  ok &= covers(p->sum_parts, p->group, p->units) && p->sum_threads % p->group == 0;
  ok &= p->passes * p->bits < 64 && (int64_t)1 << p->passes * p->bits >= p->table_rows;
  ok &= p->bits <= 8 && p->sum_threads % 32 == 0 && p->sum_threads <= 1024;
  ok &= p->sort_launches == (p->indices <= 2048 ? 0 : 2 * p->passes); // one block, beside others
  ok &= 1 + p->sort_launches + 2 <= CG_MAX_PHASES;
  // sorting takes lists, counters and a little more: never a large part of what is there anyhow
  ok &= p->workspace <= 4 * list + (1 << 18) * p->place_bytes + table + update / 8 + (1 << 16);
  return ok;
}

static void check_plans(const cg_target *t) {
  static const int64_t sizes[][3] = {
      {768, 65, 128},  {8192, 50257, 768},    {524288, 50257, 768}, {524288, 1024, 768},
      {1 << 20, 1, 1}, {1 << 20, 1 << 24, 1}, {100, 10, 100},       {16, 50257, 768},
      {40, 10, 100},   {3000000000, 10, 4},   {5000, 5000000000, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    cuda_scatter p = plan_of(sizes[i][0], sizes[i][1], sizes[i][2], t);
    print_plan(&p);
    if (!holds_together(&p))
      test_fail("the plan of %lld indices into %lld rows of %lld does not hold together",
                (long long)p.indices, (long long)p.table_rows, (long long)p.columns);
    if (p.sort != (p.indices >= 100))
      test_fail("%lld indices: %s", (long long)p.indices, p.sort ? "sorted" : "not sorted");
  }
  cuda_scatter gpt2 = plan_of(524288, 50257, 768, t);
  if (gpt2.passes != 2 || gpt2.workspace > 64 << 20 || gpt2.sort_us > 2000 ||
      gpt2.pieces * gpt2.group < 2 * 108 * 1024)
    test_fail("GPT-2's embedding is not planned sensibly");
}

int main(int argc, char **argv) {
  bool show = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *only = argc > 2 ? argv[2] : NULL;
  ir_arena *a = ir_arena_new();
  const cg_target *t = cg_target_find(a, "cuda:sm_80");
  test_run_cases(cases, sizeof cases / sizeof *cases, t, only, show);
  check_max(a, t, only, show);
  check_order(t, ORDER_INDICES);
  check_order(t, 1000); // by one block
  check_plans(cg_target_find(a, "cuda:sm_80,sm_90a"));
  ir_arena_free(a);
  return test_report("cuda_scatter");
}
