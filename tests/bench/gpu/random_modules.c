// random_modules.c: random modules (tests/random/random_graph.h) of several seeds as one module, on standard
// output: one program then holds the kernels of all.
//
//     random_modules FIRST LAST  >all.ir
//
// Names get their seed in front (%s7.n12, @s7.p0). What the loop knows by role stays one for all:
// @seed, @step (which the first module advances) and the flag @lr. Losses become metrics, for a
// program has one loss.
#include "ir/ir.h"
#include "tests/random/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_shared(const ir_state *s) {
  return s->role == IR_ROLE_SEED || s->role == IR_ROLE_COUNTER || s->role == IR_ROLE_FLAG;
}

static void rename_all(ir_arena *a, ir_module *m, unsigned long seed) {
  for (size_t i = 0; i < m->states.num; i++) {
    ir_state *s = m->states.at[i];
    if (!is_shared(s))
      s->name = ir_format(a, "s%lu.%s", seed, s->name);
  }
  for (size_t f = 0; f < m->funcs.num; f++) {
    ir_func *func = m->funcs.at[f];
    for (size_t i = 0; i < func->nodes.num; i++)
      func->nodes.at[i]->name = ir_format(a, "s%lu.n%zu", seed, i);
    for (size_t i = 0; i < func->results.num; i++) {
      ir_result *r = &func->results.at[i];
      r->name = ir_format(a, "s%lu.%s", seed, r->name);
      r->kind = r->kind == IR_RESULT_LOSS ? IR_RESULT_METRIC : r->kind;
    }
  }
}

typedef struct parts { // of the module that comes out
  ir_buf states, init, step;
} parts;

static bool begins(const char *line, const char *word) {
  return !strncmp(line, word, strlen(word));
}

static bool is_shared_state(const char *line) {
  return begins(line, "state seed ") || begins(line, "state step ") || begins(line, "state lr ");
}

// The lines of a printed module to where they belong; `first`: with what is shared.
static void sort_lines(parts *p, char *text, bool first) {
  ir_buf *into = NULL;
  for (char *line; (line = strsep(&text, "\n"));) {
    if (begins(line, "func "))
      into = begins(line, "func init") ? &p->init : &p->step;
    else if (begins(line, "}"))
      into = NULL;
    else if (begins(line, "state ") && (first || !is_shared_state(line)))
      ir_buf_printf(&p->states, "%s\n", line);
    else if (into && (first || !begins(line, "  write @step,")))
      ir_buf_printf(into, "%s\n", line);
  }
}

static void add_seed(ir_arena *a, parts *p, unsigned long seed, bool first) {
  ir_random_options o = {.seed = seed, .num_nodes = 12 + (int)(seed % 5) * 6};
  o.networks = seed % 2;
  o.differentiable = seed % 3 == 1;
  ir_module *m = ir_random_module(a, o);
  rename_all(a, m, seed);
  ir_buf text = ir_buf_new(a);
  ir_print(m, &text);
  sort_lines(p, ir_format(a, "%s", ir_buf_str(&text)), first);
}

int main(int argc, char **argv) {
  unsigned long first = argc == 3 ? strtoul(argv[1], NULL, 10) : 1;
  unsigned long last = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
  if (last < first) {
    fprintf(stderr, "usage: random_modules FIRST LAST\n");
    return 2;
  }
  ir_arena *a = ir_arena_new();
  parts p = {ir_buf_new(a), ir_buf_new(a), ir_buf_new(a)};
  for (unsigned long seed = first; seed <= last; seed++)
    add_seed(a, &p, seed, seed == first);
  printf("mltc-ir 1\nmodule random\n\n%s\nfunc init {\n%s}\n\nfunc step {\n%s}\n",
         ir_buf_str(&p.states), ir_buf_str(&p.init), ir_buf_str(&p.step));
  ir_arena_free(a);
  return 0;
}
