// builtins.h: the built-in functions, between their table (builtins.c) and their bodies
// (builtins_math.c: arithmetic and reductions; builtins_shape.c: views, indices, options;
// builtins_windows.c: windows and convolutions).
#ifndef FRONTEND_BUILTINS_H
#define FRONTEND_BUILTINS_H

#include "frontend/check.h"

enum { BUILTIN_MAX_PARAMS = 5 };

typedef struct builtin_args {
  const ast_expr *call;
  int variant;                           // from the table: an op, a dtype, ...
  const fe_value *v[BUILTIN_MAX_PARAMS]; // NULL: not given
  ir_loc at[BUILTIN_MAX_PARAMS];
} builtin_args;

typedef const fe_value *(*builtin_fn)(fe *c, const builtin_args *a);

typedef struct builtin_info {
  const char *name;
  const char *params[BUILTIN_MAX_PARAMS];
  int required;
  builtin_fn run;
  int variant;
} builtin_info;

#define BUILTIN(name) const fe_value *builtin_##name(fe *c, const builtin_args *a)
BUILTIN(math);
BUILTIN(cast);
BUILTIN(convert);
BUILTIN(sum);
BUILTIN(extreme);
BUILTIN(arg);
BUILTIN(where);
BUILTIN(stop);
BUILTIN(grad);
BUILTIN(reshape);
BUILTIN(transpose);
BUILTIN(broadcast);
BUILTIN(concat);
BUILTIN(stack);
BUILTIN(split);
BUILTIN(pad);
BUILTIN(windows);
BUILTIN(conv);
BUILTIN(pair);
BUILTIN(gather);
BUILTIN(segment_sum);
BUILTIN(segment_max);
BUILTIN(iota);
BUILTIN(fill);
BUILTIN(constant);
BUILTIN(uniform);
BUILTIN(normal);
BUILTIN(fan);
BUILTIN(shape);
BUILTIN(rank);
BUILTIN(is_none);
BUILTIN(is_zero);
BUILTIN(is_number);
BUILTIN(parameter);
BUILTIN(text);

// An axis of `rank` dimensions, negative ones from the end. False: reported.
bool builtin_axis(fe *c, const fe_value *v, ir_loc at, int rank, int *out);

#endif
