// order_moves.c: single kernels are moved away from the peak of an order.
//
//   k1 { a }  k2 { b = f(x) }  k3 { c }  k4 { d = g(b) }      the peak is in k3; b is live there
//   k1 { a }  k3 { c }  k2 { b = f(x) }  k4 { d = g(b) }      if x takes less than b
//
// Tried at the peak, the largest values first: to make a value after it, to read one that is live
// beyond it before it, and to move the kernel of the peak itself. A move stays if the peak falls,
// measured on the whole order. The number of measurements is bounded by the size of the function.
#include <string.h>

#include "passes/order_parts.h"
#include "passes/plan_sort.h"

static const int64_t most_work = INT64_C(1) << 21; // kernels looked at, all measurements together
enum { MOST_MOVES = 512, MOST_VALUES = 24 };       // of one peak

typedef struct mover {
  const order_graph *g;
  int *steps, *tried; // orders
  int *step_of;       // [kernel]
  int64_t peak;
  int peak_step;
  int64_t left; // measurements
} mover;

static void find_steps(mover *m) {
  for (int t = 0; t < m->g->n; t++)
    m->step_of[m->steps[t]] = t;
}

// The steps between which a kernel may be put.
static int earliest(const mover *m, int k) {
  int t = 0;
  for (int i = m->g->before.at[k]; i < m->g->before.at[k + 1]; i++) {
    int s = m->step_of[m->g->before.of[i]] + 1;
    t = s > t ? s : t;
  }
  return t;
}

static int latest(const mover *m, int k) {
  int t = m->g->n - 1;
  for (int i = m->g->after.at[k]; i < m->g->after.at[k + 1]; i++) {
    int s = m->step_of[m->g->after.of[i]] - 1;
    t = s < t ? s : t;
  }
  return t;
}

static bool try_move(mover *m, int k, int to) {
  int from = m->step_of[k], step = 0;
  if (from == to || m->left <= 0)
    return false;
  memcpy(m->tried, m->steps, sizeof(int) * (size_t)m->g->n);
  if (from < to)
    memmove(&m->tried[from], &m->tried[from + 1], sizeof(int) * (size_t)(to - from));
  else
    memmove(&m->tried[to + 1], &m->tried[to], sizeof(int) * (size_t)(from - to));
  m->tried[to] = k;
  m->left--;
  int64_t peak = order_peak(m->g, m->tried, &step);
  if (peak >= m->peak)
    return false;
  memcpy(m->steps, m->tried, sizeof(int) * (size_t)m->g->n);
  m->peak = peak;
  m->peak_step = step;
  find_steps(m);
  return true;
}

// --- what is live at the peak --------------------------------------------------------------------
static int last_reader(const mover *m, int v, int *step) {
  int last = -1;
  *step = -1;
  for (int i = m->g->readers.at[v]; i < m->g->readers.at[v + 1]; i++) {
    int k = m->g->readers.of[i];
    if (m->step_of[k] > *step) {
      last = k;
      *step = m->step_of[k];
    }
  }
  return last;
}

// Values made before the peak and read after it.
static size_t find_held(const mover *m, plan_sized *all) {
  size_t num = 0;
  for (int v = 0; v < m->g->s->num_values; v++) {
    int made = m->step_of[m->g->s->values[v].kernel], last;
    last_reader(m, v, &last);
    if (m->g->bytes[v] && made < m->peak_step && (last > m->peak_step || m->g->kept[v]))
      all[num++] = (plan_sized){m->g->bytes[v], v};
  }
  plan_sort_sizes(all, num);
  return num;
}

static bool move_value(mover *m, int v) {
  int maker = m->g->s->values[v].kernel, t = m->peak_step, last;
  int to = latest(m, maker);
  if (to >= t && try_move(m, maker, to))
    return true;
  int reader = last_reader(m, v, &last);
  if (reader < 0 || last <= t)
    return false;
  to = earliest(m, reader);
  return to <= t && (try_move(m, reader, to) || (to < t && try_move(m, reader, t)));
}

static bool move_once(mover *m, plan_sized *held) {
  int k = m->steps[m->peak_step];
  if (try_move(m, k, latest(m, k)) || try_move(m, k, earliest(m, k)))
    return true;
  size_t num = find_held(m, held);
  for (size_t i = 0; i < num && i < MOST_VALUES; i++)
    if (move_value(m, held[i].index))
      return true;
  return false;
}

int64_t order_move_kernels(const order_graph *g, int *steps, int64_t peak) {
  ir_arena *a = ir_arena_new();
  size_t n = (size_t)g->n;
  mover m = {.g = g, .steps = steps, .peak = peak, .left = most_work / (g->n + 1)};
  m.left = m.left > MOST_MOVES ? MOST_MOVES : m.left;
  m.tried = IR_NEW_ARRAY(a, int, n);
  m.step_of = IR_NEW_ARRAY(a, int, n);
  plan_sized *held = IR_NEW_ARRAY(a, plan_sized, g->s->num_values + 1);
  order_peak(g, steps, &m.peak_step);
  find_steps(&m);
  while (m.peak > g->least && move_once(&m, held))
    ;
  ir_arena_free(a);
  return m.peak;
}
