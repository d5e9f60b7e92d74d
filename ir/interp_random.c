// interp_random.c: the counter-based generator Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011) and the ops uniform and normal.
//
// Every element has its own counter, so its number depends on nothing but seed, step,
// stream and place: not on threads, order or other ops. docs/ir.md has the layout.
#include "ir/interp_ops.h"

#include <math.h>

enum { ROUNDS = 10 };

void ir_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

static void block_of(const interp_ctx *c, uint64_t block, uint32_t out[4]) {
  uint64_t seed = (uint64_t)(int64_t)c->in[0][0], step = (uint64_t)(int64_t)c->in[1][0];
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32),
                               (uint32_t)ir_attr_int(c->n, IR_ATTR_STREAM), (uint32_t)step};
  ir_philox(key, counter, out);
}

static double unit(uint32_t word, uint32_t add) {
  return ldexp((double)((word >> 8) + add), -24);
}

static double uniform_at(const interp_ctx *c, uint64_t e) {
  uint32_t w[4];
  block_of(c, e / 4, w);
  return unit(w[e % 4], 0);
}

// Box-Muller, cosine branch only: two words for one number, none shared between elements.
static double normal_at(const interp_ctx *c, uint64_t e) {
  uint32_t w[4];
  block_of(c, e / 2, w);
  double u1 = unit(w[2 * (e % 2)], 1), u2 = unit(w[2 * (e % 2) + 1], 0);
  return sqrt(-2 * log(u1)) * cos(2 * M_PI * u2);
}

void interp_random(interp_ctx *c) {
  for (int64_t i = 0; i < ir_elements(&c->n->type); i++)
    c->out[i] = c->n->op == IR_UNIFORM ? uniform_at(c, (uint64_t)i) : normal_at(c, (uint64_t)i);
}
