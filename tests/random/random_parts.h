// random_parts.h: what the files of the random graph generator share. For tests/random/ only.
#ifndef TESTS_RANDOM_PARTS_H
#define TESTS_RANDOM_PARTS_H

#include "ir/builder.h"
#include "tests/random/random_graph.h"

// A value that further ops may use, with what is known of its elements.
typedef struct rand_val {
  ir_node *n;
  double mag;    // bound of the absolute value
  double noise;  // bound of what f32 arithmetic may be off by, in units of 2^-24
  bool exact;    // f32 holds it exactly: comparisons, floor and the like come out the same
  bool distinct; // no two elements are equal, none is 0: no ties, no kinks
} rand_val;

typedef struct rand_gen {
  ir_arena *arena;
  ir_module *m;
  ir_builder b; // at the end of `step`
  ir_random_options o;
  uint64_t state; // of the generator's own random numbers
  IR_VEC(rand_val) floats;
  IR_VEC(rand_val) ints; // i32
  IR_VEC(ir_node *) bools;
  ir_node *seed, *step; // reads
  int64_t stream;
  int num_blocks;
} rand_gen;

typedef void (*rand_move)(rand_gen *g);
typedef struct rand_choice {
  rand_move move;
  int weight;
} rand_choice;
extern const rand_choice rand_plain_moves[];   // end with {0}
extern const rand_choice rand_network_moves[]; // end with {0}

// --- numbers
int rand_below(rand_gen *g, int n); // 0 .. n-1
bool rand_chance(rand_gen *g, int percent);
int64_t rand_dim(rand_gen *g);

// --- values
rand_val rand_float(rand_gen *g); // a value at hand, recent ones more often
rand_val rand_int(rand_gen *g);
// A value at hand that is exact; a fresh uniform one when there is none.
rand_val rand_exact(rand_gen *g);
rand_val rand_distinct(rand_gen *g);
// Adds a float value to those at hand; scales it when it has grown too large or noisy.
rand_val rand_push(rand_gen *g, ir_node *n, double mag, double noise, bool exact, bool distinct);
// The same known facts about another node.
rand_val rand_like(rand_gen *g, rand_val v, ir_node *n);
void rand_push_int(rand_gen *g, ir_node *n, double mag);
// A new state of role param and its read.
rand_val rand_param(rand_gen *g, const char *name, int rank, const int64_t *dims);
rand_val rand_scaled(rand_gen *g, rand_val v, double by); // not added to those at hand
// `v` brought to that shape by views, pads and reductions.
rand_val rand_fit(rand_gen *g, rand_val v, int rank, const int64_t *dims);
// x * x + 1/2: somewhere to take roots and logarithms
rand_val rand_positive(rand_gen *g, rand_val v);

#endif
