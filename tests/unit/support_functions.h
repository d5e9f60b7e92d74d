// support_functions.h: what tests of the prelude's functions have in common, for floats and for doubles: include it with
//   REAL, REAL_NAME  the type, and what it is called in kernels: float, "f32"
//   REAL_NEXT        nextafterf
//   MANY             arguments at a time
// defined.
#ifndef TESTS_SUPPORT_FUNCTIONS_H
#define TESTS_SUPPORT_FUNCTIONS_H

#include "tests/unit/support_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// t_NAME of the library applies k_NAME to n arguments; ONE(NAME) makes it. And t_pow.
#define FUNCTION_EXPORTS                                                                           \
  "#define ONE(name) void t_##name(const " FUNCTION_TEXT(REAL) " *x, " FUNCTION_TEXT(              \
      REAL) " *y, "                                                                                \
            "int n) {\\\n"                                                                         \
            "  int i = 0;\\\n"                                                                     \
            "  for (; i + VL <= n; i += VL) k_store_" REAL_NAME                                    \
            "(y + i, k_##name(k_load_" REAL_NAME "(x + i)));\\\n"                                  \
            "  if (i < n) k_store_" REAL_NAME "_part(y + i, k_##name(k_load_" REAL_NAME            \
            "_part(x + i, n - i)), n - i); }\n"                                                    \
            "void t_pow(const " FUNCTION_TEXT(REAL) " *x, const " FUNCTION_TEXT(                   \
                REAL) " *y, " FUNCTION_TEXT(REAL) " *z, int n) {\n"                                \
                                                  "  int i = 0;\n"                                 \
                                                  "  for (; i + VL <= n; i += VL)\n"               \
                                                  "    k_store_" REAL_NAME                         \
                                                  "(z + i, k_pow(k_load_" REAL_NAME                \
                                                  "(x + i), k_load_" REAL_NAME "(y + i)));\n"      \
                                                  "  if (i < n) k_store_" REAL_NAME                \
                                                  "_part(z + i, k_pow(k_load_" REAL_NAME           \
                                                  "_part(x + i, n - i),\n"                         \
                                                  "      k_load_" REAL_NAME                        \
                                                  "_part(y + i, n - i)), n - i); }\n"
#define FUNCTION_TEXT(x)    FUNCTION_TEXT_OF(x)
#define FUNCTION_TEXT_OF(x) #x

typedef void (*unary_fn)(const REAL *x, REAL *y, int n);
typedef void (*binary_fn)(const REAL *x, const REAL *y, REAL *z, int n);

static void *symbol(void *lib, const char *name) {
  void *p = dlsym(lib, name);
  if (!p) {
    printf("no symbol %s\n", name);
    exit(1);
  }
  return p;
}

static unary_fn unary_symbol(void *lib, const char *function) {
  char name[32];
  unary_fn fn;
  snprintf(name, sizeof name, "t_%s", function);
  void *p = symbol(lib, name);
  memcpy(&fn, &p, sizeof p);
  return fn;
}

static binary_fn binary_symbol(void *lib, const char *name) {
  binary_fn fn;
  void *p = symbol(lib, name);
  memcpy(&fn, &p, sizeof p);
  return fn;
}

// A function of a target, on MANY arguments x with results y.
typedef struct applied {
  const char *target, *name;
  unary_fn fn;
  const REAL *x, *y;
} applied;

// f(-x) = -f(x), to the bit.
static void check_symmetry(const applied *s) {
  static REAL minus[MANY], z[MANY];
  for (int i = 0; i < MANY; i++)
    minus[i] = -s->x[i];
  s->fn(minus, z, MANY);
  for (int i = 0; i < MANY; i++) {
    REAL want = -s->y[i];
    if (isnan(want) ? isnan(z[i]) : memcmp(&z[i], &want, sizeof want) == 0)
      continue;
    test_fail("%s: %s(%a) is %a, but %s(%a) is %a", s->target, s->name, (double)s->x[i],
              (double)s->y[i], s->name, (double)minus[i], (double)z[i]);
    return;
  }
}

// Along ascending arguments results fall by one ulp at most, where two polynomials meet.
static void check_rising(const applied *s) {
  for (int i = 1; i < MANY; i++)
    if (s->x[i] > s->x[i - 1] && s->y[i] < REAL_NEXT(s->y[i - 1], (REAL)-INFINITY)) {
      test_fail("%s: %s falls from %a at %a to %a at %a", s->target, s->name, (double)s->y[i - 1],
                (double)s->x[i - 1], (double)s->y[i], (double)s->x[i]);
      return;
    }
}

// Other lanes, other neighbours, partial vectors.
static void check_parts(const applied *s) {
  enum { ALL = 4096, PART = 37 };
  static REAL part[ALL];
  for (int i = 0; i + PART <= ALL; i += PART)
    s->fn(s->x + i, part + i, PART);
  if (memcmp(part, s->y, sizeof *part * (ALL / PART * PART)))
    test_fail("%s: %s gives other bits in partial vectors", s->target, s->name);
}

#endif
