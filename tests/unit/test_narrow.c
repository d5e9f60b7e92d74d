// test_narrow.c: rounding to bf16, f16 and tf32. All 65536 patterns of the 16-bit types, the points
// half way between neighbours and those right beside them: the interpreter against the definition,
// kernels of every instruction set and the emulator's instructions against the interpreter.
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "ir/narrow.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_kernels.h"

enum { PATTERNS = 65536, MAX_POINTS = 4 * PATTERNS };

typedef struct points {
  int num;
  float at[MAX_POINTS];
} points;

static void add_around(points *p, float x) {
  p->at[p->num++] = nextafterf(x, -INFINITY);
  p->at[p->num++] = x;
  p->at[p->num++] = nextafterf(x, INFINITY);
}

// --- the definition ---------------------------------------------------------------------------
static bool same(double x, double y) {
  return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

// Neighbours lie side by side in their patterns; half way, the even one wins. Adds the points.
static void check_type(ir_dtype t, points *p) {
  int infinity = t == IR_BF16 ? 0x7f80 : 0x7c00;
  for (int bits = 0; bits < PATTERNS; bits++) {
    double x = ir_narrow_of_bits(t, (uint16_t)bits);
    int magnitude = bits & 0x7fff;
    if (!isnan(x) == (magnitude > infinity) || !isinf(x) == (magnitude == infinity) ||
        (signbit(x) != 0) != (bits >> 15))
      test_fail("%s: pattern %04x is %g", ir_dtypes[t].name, bits, x);
    if (magnitude > infinity) {
      p->at[p->num++] = (float)x;
      continue;
    }
    if (ir_narrow_to_bits(t, x) != bits || !same(ir_narrow(t, x), x))
      test_fail("%s: %.9g of %04x becomes %04x", ir_dtypes[t].name, x, bits,
                ir_narrow_to_bits(t, x));
    if (magnitude >= infinity)
      continue;
    double next = ir_narrow_of_bits(t, (uint16_t)(bits + 1));
    if (isinf(next)) // as if the exponents went on
      next = copysign(ldexp(1, t == IR_BF16 ? 128 : 16), x);
    double half = (x + next) / 2;
    int even = bits + bits % 2, other = bits + 1;
    if (ir_narrow_to_bits(t, half) != even)
      test_fail("%s: half way after %04x goes to %04x", ir_dtypes[t].name, bits,
                ir_narrow_to_bits(t, half));
    float inner = nextafterf((float)half, 0), outer = nextafterf((float)half, (float)(2 * next));
    if (ir_narrow_to_bits(t, (double)inner) != bits)
      test_fail("%s: below half way after %04x", ir_dtypes[t].name, bits);
    if (outer != (float)half && ir_narrow_to_bits(t, (double)outer) != other)
      test_fail("%s: above half way after %04x", ir_dtypes[t].name, bits);
    add_around(p, (float)half);
  }
}

// Of tf32: every pattern of its 19 bits, and ties, which go away from zero.
static void check_tf32(void) {
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 0x2000u) {
    float x, half, below;
    uint32_t tie = bits + 0x1000u, under = tie - 1;
    memcpy(&x, &bits, 4), memcpy(&half, &tie, 4), memcpy(&below, &under, 4);
    uint32_t up = bits + 0x2000u;
    float next;
    memcpy(&next, &up, 4);
    bool ok = ir_narrow_tf32((double)x) == (double)x &&
              ir_narrow_tf32((double)half) == (double)next &&
              ir_narrow_tf32((double)-half) == (double)-next &&
              ir_narrow_tf32((double)below) == (double)x;
    if (!ok)
      test_fail("tf32: around %.9g", (double)x);
  }
  if (!isinf(ir_narrow_tf32(3.4028235e38)) || !isnan(ir_narrow_tf32(NAN)) ||
      !isinf(ir_narrow_tf32(1e300)))
    test_fail("tf32: the ends of the range");
}

// --- kernels ----------------------------------------------------------------------------------
// Full vectors, then parts of all lengths, then one by one: all must agree.
static const char exports[] =
    "#define ONE(T)\\\n"
    "void t_##T(const float *x, float *y, uint16_t *z, float *w, int n) {\\\n"
    "  for (int i = 0, part = VL; i < n; i += part, part = part % VL + 1) {\\\n"
    "    part = n - i < part ? n - i : part;\\\n"
    "    k_store_f32_part(y + i, k_to_##T(k_load_f32_part(x + i, part)), part);\\\n"
    "    k_store_##T##_part(z + i, k_load_f32_part(y + i, part), part);\\\n"
    "    k_store_f32_part(w + i, k_load_##T##_part(z + i, part), part); } }\\\n"
    "void t_##T##_full(const uint16_t *z, float *w, uint16_t *back, int n) {\\\n"
    "  for (int i = 0; i + VL <= n; i += VL) {\\\n"
    "    k_store_f32(w + i, k_load_##T(z + i));\\\n"
    "    k_store_##T(back + i, k_load_f32(w + i)); } }\n"
    "ONE(bf16) ONE(f16)\n"
    "void t_tf32(const float *x, float *y, int n) {\n"
    "  for (int i = 0; i + VL <= n; i += VL) k_store_f32(y + i, k_tf32(k_load_f32(x + i))); }\n";

static points all;
static float rounded[MAX_POINTS], widened[MAX_POINTS];
static uint16_t stored[MAX_POINTS];

static void *symbol(void *lib, const char *name) {
  void *p = dlsym(lib, name);
  if (!p)
    test_fail("no symbol %s", name);
  return p;
}

static void check_rounding(const cg_target *t, void *lib, ir_dtype type, const char *name) {
  void (*round)(const float *, float *, uint16_t *, float *, int);
  void *p = symbol(lib, name);
  memcpy(&round, &p, sizeof p);
  round(all.at, rounded, stored, widened, all.num);
  for (int i = 0; i < all.num; i++) {
    double want = ir_narrow(type, (double)all.at[i]);
    if (!same((double)rounded[i], want) || !same((double)widened[i], want) ||
        (!isnan(want) && stored[i] != ir_narrow_to_bits(type, want))) {
      test_fail("%s %s: %.9g becomes %.9g, stored %04x, loaded %.9g; not %.9g", t->name,
                ir_dtypes[type].name, (double)all.at[i], (double)rounded[i], stored[i],
                (double)widened[i], want);
      return;
    }
  }
}

static void check_patterns(const cg_target *t, void *lib, ir_dtype type, const char *name) {
  void (*load)(const uint16_t *, float *, uint16_t *, int);
  static uint16_t bits[PATTERNS], back[PATTERNS];
  void *p = symbol(lib, name);
  memcpy(&load, &p, sizeof p);
  for (int i = 0; i < PATTERNS; i++)
    bits[i] = (uint16_t)i;
  load(bits, widened, back, PATTERNS);
  for (int i = 0; i < PATTERNS; i++) {
    double want = ir_narrow_of_bits(type, bits[i]);
    if (same((double)widened[i], want) && (isnan(want) || back[i] == bits[i]))
      continue;
    test_fail("%s %s: pattern %04x is %.9g and goes back to %04x, not %.9g", t->name,
              ir_dtypes[type].name, bits[i], (double)widened[i], back[i], want);
    return;
  }
}

static void check_kernels(const cg_target *t) {
  ir_arena *a = ir_arena_new();
  void *lib = test_load(a, ir_format(a, "%s%s", cg_cpu_prelude(a, t, false), exports), t, 2);
  if (lib) {
    check_rounding(t, lib, IR_BF16, "t_bf16");
    check_rounding(t, lib, IR_F16, "t_f16");
    check_patterns(t, lib, IR_BF16, "t_bf16_full");
    check_patterns(t, lib, IR_F16, "t_f16_full");
    void (*tf32)(const float *, float *, int);
    void *p = symbol(lib, "t_tf32");
    memcpy(&tf32, &p, sizeof p);
    tf32(all.at, rounded, all.num / 16 * 16);
    for (int i = 0; i < all.num / 16 * 16; i++)
      if (!same((double)rounded[i], ir_narrow_tf32((double)all.at[i]))) {
        test_fail("%s tf32: %.9g becomes %.9g", t->name, (double)all.at[i], (double)rounded[i]);
        break;
      }
    dlclose(lib);
  }
  ir_arena_free(a);
}

// --- a GPU's ------------------------------------------------------------------------------------
static const char gpu_kernel[] =
    "K_KERNEL(narrow_0, 32, 4) {\n"
    "  const float *x = (const float *)args[0];\n"
    "  float *y = (float *)args[1], *z = (float *)args[2], *w = (float *)args[3];\n"
    "  const int64_t i = (task * 32 + (int)threadIdx.x) * VL;\n"
    "  const vf v = k_load_f32(x + i);\n"
    "  k_store_f32(y + i, k_to_bf16(v));\n"
    "  k_store_f32(z + i, k_to_f16(v));\n"
    "  k_store_f32(w + i, k_tf32(v));\n"
    "}\n";

static void check_emulator(void) {
  ir_arena *a = ir_arena_new();
  enum { BLOCK = 32 * 4, BLOCKS = 600 };
  static float out[3][BLOCK * BLOCKS];
  static float in[BLOCK * BLOCKS];
  int step = all.num / (BLOCK * BLOCKS) + 1;
  for (int i = 0; i < BLOCK * BLOCKS; i++)
    in[i] = all.at[(int)((int64_t)i * step % all.num)];
  void *lib = emu_build(ir_format(a, "%s%s", cg_cuda_prelude(a), gpu_kernel), NULL);
  emu_machine *m = emu_new();
  char *args[4] = {(char *)in, (char *)out[0], (char *)out[1], (char *)out[2]};
  for (int i = 0; i < 4; i++)
    emu_buffer(m, args[i], sizeof in, i > 0);
  emu_options o = {.fast = true};
  emu_report r;
  if (!lib || !emu_launch(m, emu_find(lib, "narrow_0"), BLOCKS, args, sizeof args, &o, &r))
    test_fail("emulator: %s", lib ? r.text : "no library");
  for (int i = 0; lib && i < BLOCK * BLOCKS; i++)
    if (!same((double)out[0][i], ir_narrow(IR_BF16, (double)in[i])) ||
        !same((double)out[1][i], ir_narrow(IR_F16, (double)in[i])) ||
        !same((double)out[2][i], ir_narrow_tf32((double)in[i]))) {
      test_fail("emulator: %.9g becomes %.9g, %.9g, %.9g", (double)in[i], (double)out[0][i],
                (double)out[1][i], (double)out[2][i]);
      break;
    }
  emu_free(m);
  if (lib)
    dlclose(lib);
  ir_arena_free(a);
}

int main(void) {
  check_type(IR_BF16, &all);
  // f16's patterns lie closer than bf16's: half of the points are enough
  static points more;
  check_type(IR_F16, &more);
  for (int i = 0; i < more.num && all.num + 1 < MAX_POINTS; i += 5)
    all.at[all.num++] = more.at[i];
  check_tf32();
  for (const cg_target *t = test_targets(); t->name; t++)
    check_kernels(t);
  check_emulator();
  return test_report("narrow");
}
