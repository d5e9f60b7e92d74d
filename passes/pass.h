// pass.h: the passes, and the runner that verifies, times, prints and skips them.
//
// A pass is one file with one public function that returns whether it changed
// the module. It reports user errors to the diagnostics it is given and stays
// free of printing and timing: the runner does that.
#ifndef PASSES_PASS_H
#define PASSES_PASS_H

#include "ir/ir.h"

// --- the passes, in pipeline order (passes/pipeline.c is the list) -------------------
// Products of rows that are picked of a small table become rows picked of the table's product.
bool pass_table_products(ir_module *m, ir_diags *d);
// Expands every `grad` node by reverse mode. Ops without a gradient on a path from the loss to
// a parameter are all reported at once (E0501).
bool pass_autodiff(ir_module *m, ir_diags *d);
// Writes every `conv` as a matmul of views.
bool pass_convolutions(ir_module *m, ir_diags *d);
// Constant folding and algebra: x*1, double negation, reshape of reshape, pad+pad -> concat, ...
bool pass_algebra(ir_module *m, ir_diags *d);
// One node per value: equal op, operands and attributes.
bool pass_cse(ir_module *m, ir_diags *d);
// A numerator's quotient is used instead of the numerator, where the division can move to it.
bool pass_quotients(ir_module *m, ir_diags *d);
// Removes what no result, write or effect needs.
bool pass_dce(ir_module *m, ir_diags *d);
// Sums of many products of one shape become one product with a longer k.
bool pass_join_products(ir_module *m, ir_diags *d);
// Narrows operands of f32 matmuls to what `config precision` of the module says: tf32, bf16.
bool pass_precision(ir_module *m, ir_diags *d);
// That setting: "f32" when there is none; and changing it.
const char *pass_precision_of(const ir_module *m);
void pass_set_precision(ir_module *m, const char *precision);
// Products with a value that is masked on their way take the masked value.
bool pass_masks(ir_module *m, ir_diags *d);
// What goes through two masks goes through both at once.
bool pass_join_masks(ir_module *m, ir_diags *d);
bool pass_thin_products(ir_module *m, ir_diags *d);
bool pass_narrow_sums(ir_module *m, ir_diags *d);
// Reductions with few outputs and long axes become two stages, so that they can run in
// parallel with a fixed order of sums.
bool pass_split_reductions(ir_module *m, ir_diags *d);
// For processors: so do sums of long columns that would be read as strips.
bool pass_split_strips(ir_module *m, ir_diags *d);
// For GPUs: so do sums of columns, of which there are fewer than threads.
bool pass_split_columns(ir_module *m, ir_diags *d);
// For GPUs: what is put together of more parts than a kernel may read is put together in steps.
bool pass_split_concats(ir_module *m, ir_diags *d);
// Copies what is read long after the rest of a value.
bool pass_keep_parts(ir_module *m, ir_diags *d);
// pad (concat ..) -> insert (pad ..)
bool pass_insert_parts(ir_module *m, ir_diags *d);
// Gives writes and results nodes of their own (inserts copy) so that each has one buffer.
bool pass_own_outputs(ir_module *m, ir_diags *d);
// Row sums of gradients by attention weights are taken over values instead of scores.
bool pass_row_sums(ir_module *m, ir_diags *d);
// Kernels of the ATTENTION family; all other nodes are left to fuse.
bool pass_attention(ir_module *m, ir_diags *d);
// Updates of a table that leave rows alone which no index names become kernels that touch no
// others.
bool pass_row_updates(ir_module *m, ir_diags *d);
// Puts a matrix that many products are multiplied by into the order in which they read it.
bool pass_panels(ir_module *m, ir_diags *d);
// The same for bf16, where pairs of them are multiplied.
bool pass_pair_panels(ir_module *m, ir_diags *d);
// Groups nodes into kernels (node->kernel, func->kernels in a valid order).
bool pass_fuse(ir_module *m, ir_diags *d);
// Stores one value instead of several that are cheap to compute from it where they are used.
bool pass_recompute(ir_module *m, ir_diags *d);
// Makes values again for the backward pass that only wait for it, where that is nearly free.
bool pass_remake(ir_module *m, ir_diags *d);
// `config remake = "little"`: fewer values are made again by themselves, and more are left to policies. The same bits.
#define PASS_REMAKE_LITTLE "little"
bool pass_remakes_little(const ir_module *m);
// Orders kernels for a low peak of memory; readers of a state before the kernel that overwrites it.
bool pass_order(ir_module *m, ir_diags *d);
// Kernels of eval and predict that compute a part of what one of the step's does compute all of it, and are the same
// function.
bool pass_alike(ir_module *m, ir_diags *d);
// The same once workspaces are known. Functions are `ordered` then: no pass moves or changes their
// kernels any more, here or in a compilation of the text.
bool pass_final_order(ir_module *m, ir_diags *d);
// Runs kernels of the forward pass again instead of keeping what they made: `config checkpoint` of the
// module (a policy of checkpoint.h) and `config memory_budget` (bytes).
bool pass_checkpoint(ir_module *m, ir_diags *d);
// Lets values wait in memory of the host where `config memory_budget` asks for it (offload.h).
bool pass_offload(ir_module *m, ir_diags *d);
// Casts of integers that matmuls make themselves while they pack their operands (node->folded).
bool pass_integer_operands(ir_module *m, ir_diags *d);
// Finds the bands of matrices that are not 0 and that are needed (node->nonzero, node->needed).
bool pass_bands(ir_module *m, ir_diags *d);

// For passes that look at one function at a time: whether `run` changed any of them.
bool pass_each_func(ir_module *m, bool (*run)(ir_func *f));
// node->mark = how many operands and results each node is.
void pass_count_uses(const ir_func *f);

// --- the runner -----------------------------------------------------------------------
typedef bool (*pass_fn)(ir_module *m, ir_diags *d);
typedef struct pass_info {
  const char *name; // as in --print-after=NAME
  pass_fn run;
  bool required;     // --disable-pass refuses it
  bool repeat;       // neighbours with `repeat` run in turn until none changes anything
  bool grouped;      // runs on modules that have kernels already (IR text from after fuse);
                     // the others are skipped for those
  unsigned families; // makes kernels of these (1u << IR_FAMILY_...): runs where the target has all
  bool processor;    // runs for processors only
  bool pairs;        // for those that multiply pairs of bf16
} pass_info;

// For `repeat`. What is left after so many rounds is only less simple than it could be.
enum { PASS_MAX_ROUNDS = 12 };

typedef enum pass_verify {
  PASS_VERIFY_EACH,   // after each pass that changed something
  PASS_VERIFY_AT_END, // after the last; where that finds a fault, passes run again to see whose it is
  PASS_VERIFY_NEVER,
} pass_verify;

typedef struct pass_options {
  const char *const *disabled; // names
  size_t num_disabled;
  const char *const *print_after; // names; "all" for every pass
  size_t num_print_after;
  const char *keep_dir; // --keep: writes NN-name.ir after each pass; NULL: off
  bool time_passes;     // --time-passes: a table on `log`
  unsigned families;    // that the target has generators for, bit by bit (cg_families); the passes
                        // that make kernels of others do not run
  bool processor;       // kernels are for one, not for a GPU
  bool pairs;           // which multiplies pairs of bf16
  pass_verify verify;   // when the verifier looks at what passes have made
  bool no_reproducer;   // a fault leaves none, and the module needs no copy for it
  const char *
      rerun; // what the reproducer's command needs besides, such as " --target=cuda"; NULL: nothing
  const pass_info *others; // another list that runs with the same options: its names are none to
                           // report. NULL: there is none
  int first_file;          // number of the first file in keep_dir, less 1
  FILE *log;               // where --print-after and --time-passes go; NULL: stderr
  // Called after each pass with the module as it then is (tests compare with the oracle).
  void (*after)(void *data, const char *pass, ir_module *m);
  void *after_data;
} pass_options;

// The whole list, ends with {0}.
extern const pass_info pass_pipeline[];
// What comes when kernels have been scheduled, and their workspaces are known.
extern const pass_info pass_memory_pipeline[];
// Runs a list of passes. False when errors were reported. An internal fault leaves
// `mltc-crash.ir`: the IR before the pass that failed, with the command that runs it again.
// `o` may be NULL.
bool pass_run(const pass_info *list, ir_module *m, ir_diags *d, const pass_options *o);
// pass_run on pass_pipeline.
bool pass_run_pipeline(ir_module *m, ir_diags *d, const pass_options *o);
bool pass_run_memory_pipeline(ir_module *m, ir_diags *d, const pass_options *o);

#endif
