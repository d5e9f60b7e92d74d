// schedule_weigh.c: how many bytes are live at most, for searches that ask it of thousands of sequences of steps.
//
//   steps     0 1 2 0 3           one walk from the last step to the first
//   step 3    reads h, d          h and d are live from here on down
//   step 4-   makes h (kernel 0)  that h begins here; the next reader below means an earlier one
//
// Backwards, the reader at which a value dies is the first that is met, and all that a step takes is known when it is:
// no lives need be written down. What a step computes over its operands is only looked for where it takes more than
// the most so far without. Candidates: this, or lives kept and changed as steps are (an insertion changes what
// is read where in all steps behind it; sequences that searches try differ in hundreds of places).
#include <string.h>

#include "passes/plan_parts.h"
#include "passes/schedule_parts.h"

// One for all calls: what it is cleared to before a call is how a call leaves it.
typedef struct sched_scratch {
  sched *s;
  sched_when when;
  bool *in_place; // [value] its first run makes it in a state
  int *last; // [value] the last step that reads what is made next, going backwards; -1: none so far
  int *runs; // [kernel] that are left
  sched_match match;
  int64_t live; // bytes between the step at hand and the next
} weigher;

static int64_t bytes_of(const weigher *w, int value) {
  return plan_align(w->s->values[value].bytes);
}

// In a state, or needed at the end: what its first run makes is there whoever reads it.
static bool is_in_state(const weigher *w, int value) {
  return w->in_place[value] && w->runs[w->s->values[value].kernel] == 1;
}

static bool is_kept(const weigher *w, int value) {
  const sched_value *x = &w->s->values[value];
  return (x->result || x->written) && !w->in_place[value] && w->runs[x->kernel] == 1;
}

static int64_t bytes_at_end(const weigher *w) {
  int64_t bytes = 0;
  for (int v = 0; v < w->s->num_values; v++) {
    const sched_value *x = &w->s->values[v];
    bytes += (x->result || x->written) && !w->in_place[v] ? bytes_of(w, v) : 0;
  }
  return bytes;
}

// True: some operand dies here.
static bool read_operands(weigher *w, const sched_kernel *k, int t) {
  bool any = false;
  for (int i = 0; i < k->num_in; i++) {
    int value = k->in[i].value;
    w->match.dying[i] = false;
    if (value < 0 || is_in_state(w, value) || is_kept(w, value))
      continue;
    if (w->last[value] < 0) {
      w->last[value] = t;
      w->live += bytes_of(w, value);
    }
    w->match.dying[i] = w->last[value] == t;
    any |= w->match.dying[i];
  }
  return any;
}

// Of outputs that take an operand's memory over.
static int64_t bytes_taken_over(weigher *w, int kernel) {
  const sched_kernel *k = &w->s->kernels[kernel];
  int64_t bytes = 0;
  for (int i = 0; i < k->num_values; i++)
    if (!is_in_state(w, k->first_value + i) && sched_match_output(&w->match, kernel, i))
      bytes += bytes_of(w, k->first_value + i);
  sched_match_end(&w->match, kernel);
  return bytes;
}

// Its outputs begin here. Returns the bytes of those that nobody reads.
static int64_t make_values(weigher *w, const sched_kernel *k) {
  int64_t unread = 0;
  for (int v = k->first_value; v < k->first_value + k->num_values; v++) {
    if (is_in_state(w, v))
      continue;
    if (w->last[v] < 0 && !is_kept(w, v))
      unread += bytes_of(w, v);
    else
      w->live -= bytes_of(w, v);
    w->last[v] = -1;
  }
  return unread;
}

// Bytes at step t, or a number less than `least` if they are. What lives beyond it is in w->live, and what lives before
// it afterwards.
static int64_t step(weigher *w, int t, int kernel, int64_t least) {
  const sched_kernel *k = &w->s->kernels[kernel];
  bool any_dies = read_operands(w, k, t);
  int64_t bytes = w->live + plan_align(k->k->workspace);
  bytes += make_values(w, k);
  if (any_dies && bytes >= least)
    bytes -= bytes_taken_over(w, kernel);
  w->runs[kernel]--;
  return bytes;
}

static weigher *get_scratch(sched *s) {
  if (s->scratch)
    return s->scratch;
  weigher *w = IR_NEW(s->arena, weigher);
  *w = (weigher){.s = s, .match = sched_match_new(s, s->arena)};
  w->when = sched_when_new(s, s->arena);
  w->in_place = IR_NEW_ARRAY(s->arena, bool, s->num_values + 1);
  w->last = IR_NEW_ARRAY(s->arena, int, s->num_values + 1);
  w->runs = IR_NEW_ARRAY(s->arena, int, s->num_kernels + 1);
  memset(w->last, -1, sizeof(int) * ((size_t)s->num_values + 1));
  s->scratch = w;
  return w;
}

static void begin(weigher *w, const int *steps, size_t num) {
  const sched *s = w->s;
  sched_when_set(&w->when, steps, num);
  for (size_t i = 0; i < s->writes.num; i++)
    w->in_place[s->writes.at[i].value] = false;
  for (size_t i = 0; i < s->writes.num; i++)
    w->in_place[s->writes.at[i].value] |= sched_is_in_place(s, &w->when, &s->writes.at[i]);
  for (size_t t = 0; t < num; t++)
    w->runs[steps[t]]++;
  w->live = bytes_at_end(w);
}

static int64_t weigh_with_transfers(sched *s, const int *steps, size_t num, size_t *at) {
  ir_arena *a = ir_arena_new();
  sched_lives l = sched_find_lives(s, a, steps, num);
  int64_t *live = IR_NEW_ARRAY(a, int64_t, num + 1), most = sched_live_bytes(&l, num, live);
  *at = sched_find_peak(live, most);
  ir_arena_free(a);
  return most;
}

// From the last step on, until more than `enough` are live. Returns the most, but no less than `least`.
static int64_t walk(weigher *w, const int *steps, size_t num, int64_t least, int64_t enough,
                    size_t *at) {
  int64_t most = least;
  begin(w, steps, num);
  for (size_t t = num; t-- > 0 && most <= enough;) {
    int64_t bytes = step(w, (int)t, steps[t], most);
    if (bytes < most)
      continue;
    most = bytes;
    *at = t;
  }
  return most;
}

// As after all steps.
static void forget_rest(weigher *w) {
  memset(w->last, -1, sizeof(int) * ((size_t)w->s->num_values + 1));
  memset(w->runs, 0, sizeof(int) * ((size_t)w->s->num_kernels + 1));
}

int64_t sched_weigh(sched *s, const int *steps, size_t num, size_t *at) {
  size_t unused;
  at = at ? at : &unused;
  if (s->has_transfers) // they have memory before their steps
    return weigh_with_transfers(s, steps, num, at);
  weigher *w = get_scratch(s);
  int64_t most = walk(w, steps, num, 0, INT64_MAX, at);
  BUG_IF(w->live != 0, "a step reads what no step before it makes");
  return most;
}

bool sched_fits(sched *s, const int *steps, size_t num, int64_t most) {
  size_t unused;
  if (s->has_transfers)
    return weigh_with_transfers(s, steps, num, &unused) <= most;
  weigher *w = get_scratch(s);
  bool fits = walk(w, steps, num, most > 0 ? most : 0, most, &unused) <= most;
  if (!fits)
    forget_rest(w);
  BUG_IF(fits && w->live != 0, "a step reads what no step before it makes");
  return fits;
}
