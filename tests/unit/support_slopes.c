// support_slopes.c: see support_slopes.h.
#include "support_slopes.h"

#include <math.h>
#include <string.h>

#include "support_frontend.h"
#include "support_passes.h"

typedef struct trial {
  ir_world *w;
  const ir_func *step;
  const ir_node *loss;
  const ir_tensor_value *in;
  ir_tensor_value *at, *along; // of all states; of parameters
} trial;

static const ir_node *loss_of(const ir_func *f) {
  for (size_t i = 0; i < f->results.num; i++)
    if (!strcmp(f->results.at[i].name, "loss"))
      return f->results.at[i].node;
  return NULL;
}

// The states as they were, parameters so far along the direction.
static void move(const trial *t, double by) {
  for (size_t i = 0; i < t->w->module->states.num; i++)
    for (int64_t j = 0; j < ir_elements(&t->at[i].type); j++)
      t->w->states[i].at[j] = t->at[i].at[j] + (t->along[i].at ? by * t->along[i].at[j] : 0);
}

static double loss_at(const trial *t, double by) {
  move(t, by);
  return ir_interp(t->w, t->step, t->in)[t->loss->id].at[0];
}

// What a step of sgd(1) has taken.
static double gradient(const trial *t) {
  double sum = 0;
  loss_at(t, 0);
  for (size_t i = 0; i < t->w->module->states.num; i++)
    for (int64_t j = 0; t->along[i].at && j < ir_elements(&t->at[i].type); j++)
      sum += (t->at[i].at[j] - t->w->states[i].at[j]) * t->along[i].at[j];
  return sum;
}

static double forward(const trial *t) {
  move(t, 0);
  return ir_interp_tangent(t->w, t->step, t->in, t->along, NULL)[t->loss->id].at[0];
}

static void set_direction(ir_arena *a, trial *t, uint64_t *seed) {
  size_t num = t->w->module->states.num;
  double length = 0;
  t->at = IR_NEW_ARRAY(a, ir_tensor_value, num);
  t->along = IR_NEW_ARRAY(a, ir_tensor_value, num);
  for (size_t i = 0; i < num; i++) {
    const ir_state *s = t->w->module->states.at[i];
    if (s->role == IR_ROLE_PARAM) {
      t->w->states[i] = test_random_tensor(a, s->type, seed);
      t->along[i] = test_random_tensor(a, s->type, seed);
    }
    t->at[i] = support_value(a, s->type, t->w->states[i].at);
    for (int64_t j = 0; t->along[i].at && j < ir_elements(&s->type); j++)
      length += t->along[i].at[j] * t->along[i].at[j];
  }
  for (size_t i = 0; i < num; i++)
    for (int64_t j = 0; t->along[i].at && j < ir_elements(&t->at[i].type); j++)
      t->along[i].at[j] /= sqrt(length);
}

static bool near(double x, double y) {
  return fabs(x - y) <= 1e-6 * fmax(fmax(fabs(x), fabs(y)), 1e-3);
}

void support_check_slopes(ir_arena *a, ir_module *m, uint64_t seed, const char *what) {
  static const double apart = 1e-5;
  trial t = {.w = support_world(a, m), .step = support_func(m, "step")};
  t.loss = loss_of(t.step);
  set_direction(a, &t, &seed);
  t.in = test_random_inputs(a, t.step, &seed);
  double reverse = gradient(&t), dual = forward(&t);
  double finite = (loss_at(&t, apart) - loss_at(&t, -apart)) / (2 * apart);
  CHECK(near(reverse, dual) && near(reverse, finite) && reverse != 0,
        "gradient %.10g, dual numbers %.10g, finite differences %.10g of\n%s", reverse, dual,
        finite, what);
}
