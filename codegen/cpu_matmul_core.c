// cpu_matmul_core.c: the functions of a matmul around its register tile.
//
//   NAME_0   packs panels into the workspace, one task per panel       (when something is shared)
//   NAME_1   computes: one task per group of tiles (and piece of k)
//   NAME_2   adds the pieces of k, one task per tile                    (when k is split)
//
// A finished tile either goes straight to the output or, by way of a buffer in the first cache,
// to NAME_finish: the epilogue is printed once, not once per register.
#include "codegen/cpu_matmul.h"

// A tile of fewer steps is done before the memory would be there.
enum { MIN_FETCH_K = 48 };

// Rows whose sums wait in memory, and are finished together.
static bool sums_wait(const mm_plan *plan) {
  return plan->single || plan->outer || plan->winograd;
}

static bool needs_finish(const mm_text *t) {
  if (sums_wait(t->plan))
    return true;
  if (t->plan->amx)
    return !t->p->plain || t->plan->split_k || t->plan->tail_rows || t->plan->tail_cols;
  return !mm_stores_plain(t, false) || (t->plan->tail_cols && !mm_stores_plain(t, true));
}

// Where the next tile's rows of a begin.
static const char *next_rows(const mm_text *t) {
  ir_arena *arena = t->p->arena;
  if (t->plan->a != MM_DIRECT)
    return ir_format(arena, "a + %lld", (long long)t->plan->a_panel);
  if (t->p->a.x.num > 1)
    return ir_format(arena, "a_all + %s", mm_offset(arena, &t->p->a.x, "(row + 1) * MR"));
  return ir_format(arena, "a + %lld", (long long)(t->plan->mr * mm_a_row_stride(t)));
}

// Where the next tile's columns of b begin: those of the next task, behind a task's last ones.
static const char *next_columns(const mm_text *t) {
  if (t->plan->b == MM_DIRECT && t->p->b.x.num > 1)
    return ir_format(t->p->arena, "b_all + %s",
                     mm_offset(t->p->arena, &t->p->b.x, "(col + 1) * NR"));
  return ir_format(t->p->arena, "b + %lld",
                   (long long)(t->plan->b == MM_DIRECT ? t->plan->nr : t->plan->b_panel));
}

// --- constants and pointers ---------------------------------------------------------------------

void mm_emit_constants(const mm_text *t) {
  const mm_plan *plan = t->plan;
  ir_buf_printf(
      t->out,
      "  enum { M = %lld, N = %lld, MR = %d, NR = %lld, ROW_TILES = %lld, COL_TILES = %lld };\n",
      (long long)t->p->m, (long long)t->p->n, plan->mr, (long long)plan->nr,
      (long long)plan->row_tiles, (long long)plan->col_tiles);
}

// const float *a = (const float *)args[0] + 12 + batch * 49152;
void mm_emit_operand(const mm_text *t, const char *name, const mm_operand *o, const char *cv) {
  const char *c = o->ctype;
  ir_buf_printf(t->out, "%s%s *const %s = (%s%s *)args[%d]%s", cv, c, name, cv, c, o->arg,
                mm_offset_text(t->p->arena, o));
  if (o->batch.num)
    ir_buf_printf(t->out, " + %s", mm_offset(t->p->arena, &o->batch, "batch"));
  ir_buf_puts(t->out, ";\n");
}

void mm_emit_operands(const mm_text *t) {
  mm_emit_constants(t);
  ir_buf_puts(t->out, "  ");
  mm_emit_operand(t, "a_all", &t->p->a, "const ");
  ir_buf_puts(t->out, "  ");
  mm_emit_operand(t, "b_all", &t->p->b, "const ");
}

void mm_emit_group_begin(const mm_text *t, const char *what, const char *more) {
  ir_buf_printf(
      t->out,
      "// %s.\n"
      "static void %s_group(char *const *args, int64_t batch, int64_t row_begin, int64_t row_end,\n"
      "    int64_t col_begin, int64_t col_end, int first%s) {\n",
      what, t->name, more);
}

static void emit_workspace(const mm_text *t, const char *name, int64_t offset) {
  ir_buf_printf(t->out, "  %s *const %s = (%s *)args[%d] + %lld;\n", t->p->ctype, name, t->p->ctype,
                t->p->workspace_arg, (long long)offset);
}

// --- phase 0: packing -------------------------------------------------------------------------

// One operand's part of phase 0: `task` counts its panels, or slices of k, over all batch items.
static void emit_pack_task(const mm_text *t, bool b, int64_t tasks, int64_t offset) {
  const mm_plan *plan = t->plan;
  const mm_operand *o = b ? &t->p->b : &t->p->a;
  const char *c = t->p->ctype, *which = b ? "b" : "a";
  long long panels = (long long)(b ? plan->col_tiles : plan->row_tiles),
            step = b ? (long long)plan->nr : plan->mr;
  long long panel = (long long)(b ? plan->b_panel : plan->a_panel);
  long long tail = (long long)plan->tail_nv * plan->lanes;
  ir_buf_printf(t->out,
                "      const int64_t batch = part / %lld, i = part %% %lld;\n"
                "      %s *const panels = (%s *)args[%d] + %lld + batch * %lld;\n      ",
                (long long)tasks, (long long)tasks, c, c, t->p->workspace_arg, (long long)offset,
                panels * panel);
  mm_emit_operand(t, "source", o, "const ");
  if (mm_packs_slices(o)) {
    ir_buf_printf(
        t->out, "      %s_pack_%s_slice(source, panels, i * %lld / %lld, (i + 1) * %lld / %lld);\n",
        t->name, which, (long long)t->p->k, (long long)tasks, (long long)t->p->k, (long long)tasks);
    return;
  }
  ir_buf_printf(t->out,
                "      const int64_t left = %s - i * %lld, count = left < %lld ? left : %lld;\n"
                "      %s_pack_%s(source, panels + i * %lld, i * %lld, count, ",
                b ? "N" : "M", step, step, step, t->name, which, panel, step);
  if (b && tail && tail != step)
    ir_buf_printf(t->out, "count < %lld ? %lld : %lld);\n", step, tail, step);
  else
    ir_buf_printf(t->out, "%lld);\n", step);
}

static void emit_pack_phase(const mm_text *t, int phase) {
  const mm_plan *plan = t->plan;
  bool a = plan->a == MM_SHARED, b = plan->b == MM_SHARED;
  long long a_tasks = (long long)(t->p->batch * plan->a_pack_tasks);
  long long tasks = a_tasks + (long long)(t->p->batch * plan->b_pack_tasks);
  ir_buf_printf(t->out, "// Packs %s%s%s for the whole team.\n", a ? "a" : "",
                a && b ? " and " : "", b ? "b" : "");
  ir_buf_printf(t->out, "void %s_%d(int64_t begin, int64_t end, char *const *args) {\n", t->name,
                phase);
  ir_buf_printf(t->out, "  enum { M = %lld, N = %lld };\n", (long long)t->p->m, (long long)t->p->n);
  ir_buf_puts(t->out, "  for (int64_t task = begin; task < end; task++) {\n");
  if (a && b)
    ir_buf_printf(
        t->out,
        "    // Those of a lie evenly among those of b: each thread gets its share of both.\n"
        "    const int64_t of_a = task * %lld / %lld;\n"
        "    const int is_a = (task + 1) * %lld / %lld > of_a;\n"
        "    const int64_t part = is_a ? of_a : task - of_a;\n",
        a_tasks, tasks, a_tasks, tasks);
  else
    ir_buf_puts(t->out, "    const int64_t part = task;\n");
  if (a) {
    ir_buf_puts(t->out, b ? "    if (is_a) {\n" : "    {\n");
    emit_pack_task(t, false, plan->a_pack_tasks, 0);
    ir_buf_puts(t->out, "    }\n");
  }
  if (b) {
    ir_buf_puts(t->out, a ? "    if (!is_a) {\n" : "    {\n");
    emit_pack_task(t, true, plan->b_pack_tasks, plan->b_offset);
    ir_buf_puts(t->out, "    }\n");
  }
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// --- phase 1: computing -----------------------------------------------------------------------

// Before its first tile a task packs all of its rows, or before each block of them that block.
static bool packs_all_rows(const mm_plan *plan) {
  return plan->block_rows == ir_ceil_div(plan->row_tiles, plan->group_rows);
}

static void emit_local_a(const mm_text *t, const char *in, const char *from, const char *to) {
  const mm_plan *plan = t->plan;
  if (mm_packs_side_by_side(t->p, plan))
    ir_buf_printf(t->out, "%s%s_pack_a(a_all, a_panels, %s, %s, 0, %lld);\n", in, t->name, from, to,
                  (long long)t->p->k);
  else
    ir_buf_printf(t->out,
                  "%sfor (int64_t row = %s; row < %s; row++)\n"
                  "%s  %s_pack_a(a_all, a_panels + (row - %s) * %lld, row * MR,\n"
                  "%s            M - row * MR < MR ? M - row * MR : MR, MR);\n",
                  in, from, to, in, t->name, from, (long long)plan->a_panel, in);
}

// Buffers on the stack, and packing that a task does before its first tile.
static void emit_task_buffers(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const char *c = t->p->ctype;
  if (plan->a == MM_LOCAL || plan->a == MM_PIECES)
    ir_buf_printf(t->out, "  %s a_panels[%lld] __attribute__((aligned(64)));\n", c,
                  (long long)(plan->block_rows * plan->a_panel));
  if (plan->a == MM_LOCAL && packs_all_rows(plan))
    emit_local_a(t, "  ", "row_begin", "row_end");
  if (plan->b == MM_LOCAL)
    ir_buf_printf(t->out, "  %s b_panels[%lld] __attribute__((aligned(64)));\n", c,
                  (long long)(plan->b_panel * plan->block_cols));
  int64_t width = (int64_t)plan->tail_nv * plan->lanes;
  if (mm_packs_tail(t->plan))
    ir_buf_printf(t->out,
                  "  %s b_tail[%lld] __attribute__((aligned(64))); // the last columns, padded\n"
                  "  if (col_end == COL_TILES)\n"
                  "    %s_pack_b(b_all, b_tail, (COL_TILES - 1) * NR, %lld, %lld);\n",
                  c, (long long)(width * t->p->k), t->name, (long long)plan->tail_cols,
                  (long long)width);
  if (plan->lists)
    mm_emit_list_buffer(t);
  if (needs_finish(t) && !plan->split_k)
    ir_buf_printf(t->out, "  %s sums[%lld] __attribute__((aligned(64)));\n", c,
                  (long long)(plan->mr * plan->nr *
                                  (mm_pieces_wait(plan) ? plan->block_rows * plan->block_cols : 1) +
                              plan->lanes)); // the last row, too, may be read in full vectors
}

static void emit_a_pointer(const mm_text *t) {
  const char *c = t->p->ctype;
  if (t->plan->a == MM_DIRECT && t->p->a.x.num > 1)
    ir_buf_printf(t->out, "const %s *a = a_all + %s;\n", c,
                  mm_offset(t->p->arena, &t->p->a.x, "row * MR"));
  else if (t->plan->a == MM_DIRECT)
    ir_buf_printf(t->out, "const %s *a = a_all + row * MR * %lld;\n", c,
                  (long long)mm_a_row_stride(t));
  else if (t->plan->a == MM_LOCAL || t->plan->a == MM_PIECES)
    ir_buf_printf(t->out, "const %s *a = a_panels + (row - row_block) * %lld;\n", c,
                  (long long)t->plan->a_panel);
  else
    ir_buf_printf(t->out, "const %s *a = a_shared + (batch * ROW_TILES + row) * %lld;\n", c,
                  (long long)t->plan->a_panel);
}

void mm_emit_b_pointer(const mm_text *t) {
  const char *c = t->p->ctype;
  if (t->plan->b == MM_LOCAL)
    ir_buf_printf(t->out, "const %s *b = b_panels + (col - col_block) * %lld;\n", c,
                  (long long)t->plan->b_panel);
  else if (t->plan->b == MM_SHARED)
    ir_buf_printf(t->out, "const %s *b = b_shared + (batch * COL_TILES + col) * %lld;\n", c,
                  (long long)t->plan->b_panel);
  else if (mm_packs_tail(t->plan))
    ir_buf_printf(t->out, "const %s *b = col == COL_TILES - 1 ? b_tail : b_all + col * NR;\n", c);
  else
    ir_buf_printf(t->out, "const %s *b = b_all + %s;\n", c,
                  t->p->b.x.num > 1 ? mm_offset(t->p->arena, &t->p->b.x, "col * NR") : "col * NR");
}

static const char *waiting_place(const mm_text *t) {
  return mm_pieces_wait(t->plan)
             ? ir_format(t->p->arena,
                         "sums + ((row - row_block) * %lld + col - col_block) * (MR * NR)",
                         (long long)t->plan->block_cols)
             : "sums";
}

// Where the tile's sums go, and who consumes them.
static void emit_c_pointer(const mm_text *t, const char *indent) {
  const char *c = t->p->ctype;
  int64_t pitch = 0;
  mm_is_flat(&t->p->c.x, &pitch);
  const char *plain =
      ir_format(t->p->arena, "c_all + row * MR * %lld + col * NR", (long long)pitch);
  ir_buf_puts(t->out, indent);
  if (t->plan->split_k)
    ir_buf_printf(
        t->out,
        "%s *c = partial + (((piece * %lld + batch) * ROW_TILES + row) * COL_TILES + col) * "
        "(MR * NR);\n",
        c, (long long)t->p->batch);
  else if (!needs_finish(t))
    ir_buf_printf(t->out, "%s *c = %s;\n", c, plain);
  else if (mm_stores_plain(t, false) && t->p->n >= t->plan->nr)
    ir_buf_printf(t->out, "%s *c = col < COL_TILES - 1 ? %s : %s;\n", c, plain, waiting_place(t));
  else
    ir_buf_printf(t->out, "%s *c = %s;\n", c, waiting_place(t));
}

static void emit_finish_call(const mm_text *t, const char *indent) {
  if (!needs_finish(t) || t->plan->split_k)
    return;
  ir_buf_puts(t->out, indent);
  const char *last_piece = mm_pieces_wait(t->plan) ? "k + steps == K" : NULL;
  const char *ragged =
      mm_stores_plain(t, false) && t->p->n >= t->plan->nr ? "col == COL_TILES - 1" : NULL;
  if (last_piece || ragged)
    ir_buf_printf(t->out, "if (%s%s%s)\n%s  ", last_piece ? last_piece : "",
                  last_piece && ragged ? " && " : "", ragged ? ragged : "", indent);
  ir_buf_printf(t->out,
                "%s_finish(args, c, NR, batch, row * MR, M - row * MR < MR ? M - row * MR : MR,\n"
                "%s    col * NR, N - col * NR < NR ? N - col * NR : NR);\n",
                t->name, indent);
}

// Rows of a are new to a thread's caches in the first column of a block, panels of b in its first row, if
// the thread has not packed them itself. What all tasks read and the caches keep is new in a thread's
// first task.
static void emit_next(const mm_text *t, const char *indent) {
  const mm_plan *plan = t->plan;
  if (!plan->lists) { // those have read the rows of a
    ir_buf_printf(t->out, "%sconst %s *next_a = %s, *next_b = %s;\n", indent, t->p->ctype,
                  next_rows(t), next_columns(t));
    ir_buf_printf(t->out, "%sconst int new_a = %s%s;\n", indent,
                  plan->a == MM_LOCAL ? "0" : "col == col_block", plan->a_stays ? " && first" : "");
  }
  ir_buf_printf(t->out, "%sconst int new_b = %s%s;\n", indent,
                plan->b == MM_LOCAL ? "0" : "row == row_block", plan->b_stays ? " && first" : "");
}

static const char *news(const mm_text *t) {
  return !mm_looks_ahead(t) ? "" : t->plan->lists ? ", new_b" : ", next_a, next_b, new_a || new_b";
}

static void emit_visit(const mm_text *t, const char *indent) {
  mm_emit_skip(t, indent);
  if (!t->plan->lists) {
    ir_buf_puts(t->out, indent);
    emit_a_pointer(t);
  }
  ir_buf_puts(t->out, indent);
  mm_emit_b_pointer(t);
  emit_c_pointer(t, indent);
  if (t->fetches)
    ir_buf_printf(t->out,
                  "%s%s_fetch(args, batch, row * MR, M - row * MR < MR ? M - row * MR : MR, col * "
                  "NR);\n",
                  indent, t->name);
  if (mm_looks_ahead(t))
    emit_next(t, indent);
  const char *steps = mm_emit_steps(t, indent);
  const char *a = t->plan->a == MM_PIECES && mm_limits_steps(t->p)
                      ? ir_format(t->p->arena, "a + (from - k) * %lld", (long long)mm_a_k_stride(t))
                      : "a";
  bool waits =
      mm_pieces_wait(t->plan) && mm_limits_steps(t->p); // with sums that no step is added to
  if (waits)
    ir_buf_printf(t->out, "%sif (count > 0 || k == %s)\n", indent,
                  t->plan->split_k ? "start" : "0");
  ir_buf_printf(t->out, "%s%s%s_tile(%s, b, c, row, col%s%s);\n", indent, waits ? "  " : "",
                t->name, a, news(t), steps);
  emit_finish_call(t, indent);
}

// Packs the panels of b for a block of columns.
static void emit_local_b(const mm_text *t) {
  const mm_plan *plan = t->plan;
  ir_buf_printf(t->out,
                "    for (int64_t col = col_block; col < col_stop; col++)\n"
                "      %s_pack_b(b_all, b_panels + (col - col_block) * %lld, col * NR, ",
                t->name, (long long)plan->b_panel);
  if (plan->tail_cols)
    ir_buf_printf(t->out,
                  "N - col * NR < NR ? N - col * NR : NR,\n"
                  "          col == COL_TILES - 1 ? %lld : NR);\n",
                  plan->tail_nv * (long long)plan->lanes);
  else
    ir_buf_puts(t->out, "NR, NR);\n");
}

// The pieces of k, or of the part of it that is the task's.
static void emit_piece_loop(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const char *first = plan->split_k ? "start" : "0", *stop = plan->split_k ? "stop" : "K";
  long long steps = (long long)(plan->by_pieces ? plan->piece : plan->k_block);
  ir_buf_printf(t->out,
                "      for (int64_t k = %s; k < %s; k += %lld) {\n"
                "        const int64_t steps = %s - k < %lld ? %s - k : %lld;\n",
                first, stop, steps, stop, steps, stop, steps);
}

// for blocks of columns, for blocks of rows, [for pieces of k,] for rows, for columns: visit
static void emit_task_loops(const mm_text *t) {
  const mm_plan *plan = t->plan;
  long long bc = (long long)plan->block_cols, br = (long long)plan->block_rows;
  ir_buf_printf(
      t->out,
      "  for (int64_t col_block = col_begin; col_block < col_end; col_block += %lld) {\n"
      "    const int64_t col_stop = col_end - col_block < %lld ? col_end : col_block + %lld;\n",
      bc, bc, bc);
  if (plan->b == MM_LOCAL)
    emit_local_b(t);
  if (plan->lists)
    mm_emit_may_leave_out(t);
  ir_buf_printf(
      t->out,
      "    for (int64_t row_block = row_begin; row_block < row_end; row_block += %lld) {\n"
      "      const int64_t row_stop = row_end - row_block < %lld ? row_end : row_block + %lld;\n",
      br, br, br);
  if (plan->a == MM_LOCAL && !packs_all_rows(plan))
    emit_local_a(t, "      ", "row_block", "row_stop");
  const char *in = mm_pieces_wait(plan) ? "        " : "      ";
  if (mm_pieces_wait(plan))
    emit_piece_loop(t);
  if (plan->a == MM_PIECES)
    ir_buf_printf(t->out, "        %s_pack_a(a_all, a_panels, row_block, row_stop, k, steps);\n",
                  t->name);
  const char *inner = ir_format(t->p->arena, "%s  ", in);
  ir_buf_printf(t->out, "%sfor (int64_t row = row_block; row < row_stop; row++) {\n", in);
  if (plan->lists)
    mm_emit_list(t, inner);
  ir_buf_printf(t->out, "%sfor (int64_t col = col_block; col < col_stop; col++) {\n", inner);
  emit_visit(t, ir_format(t->p->arena, "%s  ", inner));
  ir_buf_printf(t->out, "%s}\n%s}\n", inner, in);
  if (mm_pieces_wait(plan))
    ir_buf_puts(t->out, "      }\n");
  ir_buf_puts(t->out, "    }\n  }\n");
}

// What of k is this task's: all that it takes at a time, or the ends of it.
static void emit_part_of_k(const mm_text *t) {
  long long steps = (long long)t->plan->k_block;
  if (mm_pieces_wait(t->plan))
    ir_buf_printf(
        t->out,
        "  const int64_t start = piece * %lld, stop = K - start < %lld ? K : start + %lld;\n",
        steps, steps, steps);
  else
    ir_buf_printf(t->out,
                  "  const int64_t k = piece * %lld, steps = K - k < %lld ? K - k : %lld;\n", steps,
                  steps, steps);
}

static void emit_group(const mm_text *t) {
  const mm_plan *plan = t->plan;
  mm_emit_group_begin(
      t, "The tiles of rows [row_begin, row_end) and columns [col_begin, col_end)",
      ir_format(t->p->arena, "%s%s", plan->split_k ? ", int64_t piece" : "",
                mm_remembers(plan) ? ir_format(t->p->arena, ", %s_seen *seen", t->name) : ""));
  mm_emit_constants(t);
  if (plan->k_blocks > 1)
    ir_buf_printf(t->out, "  enum { K = %lld };\n", (long long)t->p->k);
  ir_buf_puts(t->out, "  (void)batch, (void)first;\n");
  if (plan->a != MM_SHARED) {
    ir_buf_puts(t->out, "  ");
    mm_emit_operand(t, "a_all", &t->p->a, "const ");
  } else {
    emit_workspace(t, "a_shared", 0);
  }
  if (plan->b != MM_SHARED) {
    ir_buf_puts(t->out, "  ");
    mm_emit_operand(t, "b_all", &t->p->b, "const ");
  } else {
    emit_workspace(t, "b_shared", plan->b_offset);
  }
  if (plan->split_k) {
    emit_workspace(t, "partial", plan->partial_offset / t->p->elem_bytes);
    emit_part_of_k(t);
  } else if (mm_stores_plain(t, t->p->n < plan->nr)) {
    ir_buf_puts(t->out, "  ");
    mm_emit_operand(t, "c_all", &t->p->c, "");
  }
  emit_task_buffers(t);
  emit_task_loops(t);
  ir_buf_puts(t->out, "}\n\n");
}

static void emit_compute_phase(const mm_text *t, int phase) {
  const mm_plan *plan = t->plan;
  if (plan->amx)
    mm_emit_amx(t);
  else if (plan->single)
    mm_emit_single(t);
  else if (plan->outer)
    mm_emit_outer(t);
  else if (plan->winograd && plan->split_k)
    mm_emit_winograd_weights(t);
  else if (plan->winograd)
    mm_emit_winograd(t);
  else
    emit_group(t);
  ir_buf_printf(
      t->out,
      "// A task is one of %lld x %lld groups of tiles%s%s.\n"
      "void %s_%d(int64_t begin, int64_t end, char *const *args) {\n"
      "  enum { GROUP_ROWS = %lld, GROUP_COLS = %lld, ROW_TILES = %lld, COL_TILES = %lld, "
      "PIECES = %lld };\n",
      (long long)plan->group_rows, (long long)plan->group_cols,
      plan->split_k     ? " and pieces of k"
      : t->p->batch > 1 ? " of one batch item"
                        : "",
      plan->by_columns ? ", column by column" : "", t->name, phase, (long long)plan->group_rows,
      (long long)plan->group_cols, (long long)plan->row_tiles, (long long)plan->col_tiles,
      (long long)(plan->split_k ? plan->k_blocks : 1));
  bool remembers = mm_remembers(plan);
  if (remembers)
    mm_emit_seen(t);
  if (plan->amx)
    ir_buf_puts(t->out, "  k_amx_begin();\n");
  bool joins = mm_joins_tasks(plan);
  ir_buf_printf(t->out,
                "  for (int64_t task = begin%s; task < end; %s) {\n"
                "    const int64_t col = task / %s %% GROUP_COLS;\n"
                "    const int64_t row = task / %s %% GROUP_ROWS;\n"
                "    const int64_t batch = task / (PIECES * GROUP_COLS * GROUP_ROWS);\n",
                joins ? ", num" : "", joins ? "task += num" : "task++",
                plan->by_columns ? "(PIECES * GROUP_ROWS)" : "PIECES",
                plan->by_columns ? "PIECES" : "(PIECES * GROUP_COLS)");
  if (joins)
    ir_buf_puts(t->out, "    num = end - task < GROUP_ROWS - row ? end - task : GROUP_ROWS - row; "
                        "// of the same columns\n");
  if (remembers)
    mm_emit_look(t, "    ");
  ir_buf_printf(t->out,
                "    %s_group(args, batch, row * ROW_TILES / GROUP_ROWS, (row + %s) * ROW_TILES / "
                "GROUP_ROWS,\n"
                "        col * COL_TILES / GROUP_COLS, (col + 1) * COL_TILES / GROUP_COLS, task == "
                "begin%s%s);\n"
                "  }\n%s}\n\n",
                t->name, joins ? "num" : "1", plan->split_k ? ", task % PIECES" : "",
                remembers ? ", &seen" : "", plan->amx ? "  k_amx_end();\n" : "");
}

// --- phase 2: adding the pieces of k -------------------------------------------------------------

static void emit_sum_phase(const mm_text *t, int phase) {
  const mm_plan *plan = t->plan;
  int64_t tiles = t->p->batch * plan->row_tiles * plan->col_tiles, tile = plan->mr * plan->nr;
  ir_buf_printf(t->out,
                "// Adds the %lld pieces of k of each tile, in order.\n"
                "void %s_%d(int64_t begin, int64_t end, char *const *args) {\n",
                (long long)plan->k_blocks, t->name, phase);
  mm_emit_constants(t);
  emit_workspace(t, "partial", plan->partial_offset / t->p->elem_bytes);
  ir_buf_printf(
      t->out,
      "  %s sums[%lld] __attribute__((aligned(64)));\n"
      "  for (int64_t tile = begin; tile < end; tile++) {\n"
      "    for (int64_t i = 0; i < MR * NR; i++)\n"
      "      sums[i] = partial[tile * (MR * NR) + i];\n"
      "    for (int64_t piece = 1; piece < %lld; piece++)\n"
      "      for (int64_t i = 0; i < MR * NR; i++)\n"
      "        sums[i] += partial[(piece * %lld + tile) * (MR * NR) + i];\n"
      "    const int64_t col = tile %% COL_TILES, row = tile / COL_TILES %% ROW_TILES;\n"
      "    const int64_t batch = tile / (COL_TILES * ROW_TILES);\n"
      "    %s_finish(args, sums, NR, batch, row * MR, M - row * MR < MR ? M - row * MR : MR,\n"
      "        col * NR, N - col * NR < NR ? N - col * NR : NR);\n"
      "  }\n}\n\n",
      t->p->ctype, (long long)(tile + plan->lanes), (long long)plan->k_blocks, (long long)tiles,
      t->name);
}

// --- the whole kernel ----------------------------------------------------------------------------

static const char *const access_words[] = {"in place", "packed by each task", "packed in phase 0",
                                           "packed by each task, a piece of k at a time",
                                           "packed by lists"};

static void emit_head(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const mm_problem *p = t->p;
  ir_buf_printf(t->out, "// c[%lld,%lld] = a[%lld,%lld] b[%lld,%lld]", (long long)p->m,
                (long long)p->n, (long long)p->m, (long long)p->k, (long long)p->k,
                (long long)p->n);
  if (p->batch > 1)
    ir_buf_printf(t->out, ", %lld times", (long long)p->batch);
  ir_buf_printf(t->out, ": tiles of %d rows x %lld columns; a %s, b %s", plan->mr,
                (long long)plan->nr, access_words[plan->a], access_words[plan->b]);
  if (plan->k_blocks > 1 && plan->winograd)
    ir_buf_printf(t->out, "; k in %lld pieces", (long long)plan->k_blocks);
  else if (plan->k_blocks > 1)
    ir_buf_printf(t->out, "; k in pieces of %lld", (long long)plan->k_block);
  if (plan->amx)
    ir_buf_puts(t->out, "; on the matrix unit");
  if (plan->lists)
    ir_buf_puts(t->out, "; steps of zeros are left out");
  if (plan->single)
    ir_buf_puts(t->out, "; each row leaves out its own steps of zeros");
  if (plan->outer)
    ir_buf_printf(t->out, "; %d steps at a time leave out their rows of zeros", plan->together);
  if (plan->winograd)
    ir_buf_printf(t->out, "; 3 x 3 windows by F(2 x 2, 3 x 3), %lld patches at a time",
                  (long long)plan->patches);
  ir_buf_printf(t->out,
                ".\ntypedef %s %s_vec __attribute__((vector_size(%d)));\n"
                "typedef %s %s_mem __attribute__((vector_size(%d), aligned(%d), may_alias));\n\n",
                p->ctype, t->name, p->target->vector_bytes, p->ctype, t->name,
                p->target->vector_bytes, p->elem_bytes);
  if (plan->masks && plan->tail_cols % plan->lanes && p->target->vector_bytes == 32)
    ir_buf_printf(t->out, "typedef int %s_mask __attribute__((vector_size(32)));\n\n", t->name);
}

void mm_emit(const mm_problem *p, const mm_plan *plan, const char *name, ir_buf *out) {
  mm_text t = {.p = p, .plan = plan, .name = name, .out = out};
  int phase = 0;
  emit_head(&t);
  if (needs_finish(&t))
    p->emit_finish(p, p->data, name, out);
  if (p->emit_fetch && plan->k_blocks == 1 && p->k >= MIN_FETCH_K && !sums_wait(plan))
    t.fetches = p->emit_fetch(p, p->data, name, plan->nr, out);
  if (plan->amx || sums_wait(plan)) {
    if (plan->winograd && !plan->split_k)
      mm_emit_filters(&t, phase++);
    emit_compute_phase(&t, phase++);
    if (plan->split_k)
      (plan->winograd ? mm_emit_winograd_sums : emit_sum_phase)(&t, phase);
    return;
  }
  mm_emit_tiles(&t);
  if (mm_limits_steps(p))
    mm_emit_span(&t);
  if (plan->lists)
    mm_emit_lists(&t);
  mm_emit_packing(&t);
  if (plan->a == MM_SHARED || plan->b == MM_SHARED)
    emit_pack_phase(&t, phase++);
  emit_compute_phase(&t, phase++);
  if (plan->split_k)
    emit_sum_phase(&t, phase);
}
