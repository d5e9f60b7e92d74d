// cpu_matmul_amx.h: what the parts of products on a matrix unit share.
//
//   cpu_matmul_amx_plan.c  groups, blocks and pieces; cycles
//   cpu_matmul_amx.c       text: tasks around the tiles
//   cpu_matmul_amx_pack.c  how memory holds operands, and copying them into panels
#ifndef CODEGEN_CPU_MATMUL_AMX_H
#define CODEGEN_CPU_MATMUL_AMX_H

#include "codegen/cpu_matmul.h"

enum { MM_AMX_TILE = 32 }; // rows and columns of a tile, and steps of k of a block

// What lies side by side in memory: steps of k; rows of a, or columns of b; these in pairs of steps.
typedef enum amx_layout { AMX_ALONG, AMX_ACROSS, AMX_PAIRED } amx_layout;
typedef struct amx_side {
  amx_layout how;
  int64_t pitch; // of lines; 0: they lie anywhere, and each is put together from parts of runs
  int64_t run;   // neighbours in memory, as far as a block looks
} amx_side;

// Words of a panel: of the steps that are packed at a time.
int64_t mm_amx_panel_words(const mm_plan *g);
// A task does not pack all its steps at a time: sums of a block have a place of their own each.
bool mm_amx_sums_wait(const mm_plan *g);

// False: memory does not hold the operand in lines of bf16 that are worth the unit.
bool mm_amx_find_side(const mm_operand *o, amx_side *s);
// Cycles to pack a number.
double mm_amx_pack_cycles(const mm_operand *o, bool of_b);
// Prints NAME_put_a, or b: packs steps [first, first + steps) of `count` rows (columns) from `line` on.
void mm_amx_emit_put(const mm_text *t, bool of_b);

#endif
