// band.h: bands of matrices: the diagonals [lower, upper] of the last two axes of a value, where
// diagonal d holds the elements with column - row == d. Causal attention lives in [-T, 0], a
// sliding window of w in [-w, 0].
//
// A band always lies within its matrix: from diagonal -(rows - 1) to columns - 1. A value of rank
// 1 is one row.
#ifndef PASSES_BAND_H
#define PASSES_BAND_H

#include "ir/ir.h"

// The matrix of a value: its second to last dimension, and its last; 1 where there is none.
int64_t band_rows(const ir_type *t);
int64_t band_columns(const ir_type *t);
ir_band band_all(const ir_type *t); // every diagonal of that matrix
ir_band band_none(void);            // no diagonal; band_is_empty is true of others, too
bool band_is_empty(ir_band b);
bool band_is_all(ir_band b, const ir_type *t); // nothing of the matrix lies outside
ir_band band_join(ir_band x, ir_band y);       // the narrowest band that holds both
ir_band band_meet(ir_band x, ir_band y);       // the diagonals that both have
ir_band band_turn(ir_band b);                  // of the transposed matrix

// Through a view: from the operand's elements to the view's, and back. All of it where the view
// does not keep diagonals together.
ir_band band_through_view(const ir_node *view, ir_band of_operand);
ir_band band_behind_view(const ir_node *view, ir_band of_view);

// Where a comparison of integers that are affine in the indices (sums and multiples of iotas and
// constants, through views) can be true, and where it can be false. Everywhere for other nodes.
typedef struct band_truth {
  ir_band yes, no;
} band_truth;
band_truth band_of_comparison(const ir_node *n);
// The same of  p * (column - row) + rest OP 0  in a matrix with the diagonals `all`.
band_truth band_of_difference(ir_op op, int64_t p, int64_t rest, ir_band all);

// What limits the products of c[m,n] = sum over k of a[m,k] b[k,n], from the facts on the nodes of
// a matmul. Diagonals: k - m of a, n - k of b, n - m of c.
typedef struct band_product {
  ir_band a, b; // outside: the operand is 0
  ir_band c;    // outside: nobody needs the sum
  bool limited; // some band leaves something out
} band_product;
band_product band_of_matmul(const ir_node *matmul);
// The steps of k [*first, *last] that matter to rows [m0, m1] and columns [n0, n1] of c (all
// inclusive); none when *first > *last.
void band_steps(const band_product *b, int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t k,
                int64_t *first, int64_t *last);
// Products that matter, of m * n * k.
int64_t band_count_products(const band_product *b, int64_t m, int64_t n, int64_t k);

#endif
