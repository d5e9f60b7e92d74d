// cpu_expr.h: the parts of expression emission that the LOOP generator shares with itself.
#ifndef CODEGEN_CPU_EXPR_H
#define CODEGEN_CPU_EXPR_H

#include "codegen/codegen.h"

// The register type of a dtype ("vf"), a C literal ("0.5f") and a splat of it ("k_f32(0.5f)").
const char *cpu_register(ir_dtype t);
const char *cpu_literal(ir_arena *a, ir_dtype t, double value);
const char *cpu_constant(ir_arena *a, ir_dtype t, double value);
// `spell` with $0, $1, $2 replaced.
const char *cpu_spell(ir_arena *a, const char *spell, const char *const *operands);
// Small integers live in 32-bit lanes: `x` brought back into the range of t.
const char *cpu_wrap(ir_arena *a, ir_dtype t, const char *x);
// "p_x + i0 * 128 + j"; without a pointer: "i0 * 128 + j", "0" when nothing is left.
const char *cpu_address(const cg_expr *e, const char *pointer, const dom_access *at);
// Elements from lane to lane; 0 in scalar code.
int64_t cpu_lane_stride(const cg_expr *e, const dom_access *at);
// C expression of a load, emitted once per scope.
const char *cpu_emit_load(cg_expr *e, const dom_load *l);
// `expr` holds what that load gives, in this scope.
void cpu_bind_load(cg_expr *e, const dom_load *l, const char *expr);
// C expression of operand i of user: a load or another member.
const char *cpu_emit_operand(cg_expr *e, const ir_node *user, int operand);
// Divisions by the value of member n (a variable of this scope) become products with 1/n.
void cpu_emit_inverse(cg_expr *e, const ir_node *n);
void cpu_emit_inverse_of(cg_expr *e, ir_dtype t, const char *x); // of a variable of that type
// `name` holds the stream of random member n at run time; without that it is a constant.
void cpu_bind_stream(cg_expr *e, const ir_node *n, const char *name);
// Position of n among the kernel's members, or -1.
int cpu_member(const cg_kernel *k, const ir_node *n);
bool cpu_varies(const cg_kernel *k, const ir_node *member, int axis);
void cpu_line(cg_expr *e, const char *fmt, ...) IR_PRINTF(2, 3);

#endif
