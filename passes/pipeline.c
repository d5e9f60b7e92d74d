// pipeline.c: from the tensor IR of a graph to kernels in order. This list is the
// architecture of the middle of the compiler; docs/passes.md walks through it.
#include "passes/pass.h"

const pass_info pass_pipeline[] = {
    // rows of a small table are multiplied once, not as often as a batch picks them
    {.name = "table_products", .run = pass_table_products, .processor = true},
    // the whole step as ordinary nodes
    {"autodiff", pass_autodiff, .required = true},
    {"convolutions", pass_convolutions, .required = true},
    // fewer nodes, less work
    {"algebra", pass_algebra, .repeat = true},
    {"cse", pass_cse, .repeat = true},
    {.name = "quotients", .run = pass_quotients, .repeat = true},
    {"dce", pass_dce, .repeat = true},
    // the gradient of a weight that many steps use is one product
    {.name = "join_products", .run = pass_join_products},
    // the weights of masked attention are stored once
    {.name = "masks", .run = pass_masks},
    // the backward waits for one mask instead of two
    {.name = "join_masks", .run = pass_join_masks},
    // what a matmul would use once is read as it lies
    {.name = "thin_products", .run = pass_thin_products},
    // a few columns fill no vector: several rows side by side do
    {.name = "narrow_sums", .run = pass_narrow_sums, .processor = true},
    // work for all threads, a buffer for every output
    {.name = "split_reductions", .run = pass_split_reductions},
    // on processors long columns that would be read as strips, too
    {.name = "split_strips", .run = pass_split_strips, .processor = true},
    // on GPUs the columns of a matrix, too
    {.name = "split_columns", .run = pass_split_columns, .families = 1u << IR_FAMILY_ATTENTION},
    // no kernel there reads more arrays than it may
    {.name = "split_concats", .run = pass_split_concats, .families = 1u << IR_FAMILY_ATTENTION},
    {"own_outputs", pass_own_outputs, .required = true},
    // where the target has kernels for attention: gradients of softmax by values
    {.name = "row_sums", .run = pass_row_sums, .families = 1u << IR_FAMILY_ATTENTION},
    // what tensor cores multiply
    {.name = "precision", .run = pass_precision},
    // scores of attention stay inside kernels
    {.name = "attention", .run = pass_attention, .families = 1u << IR_FAMILY_ATTENTION},
    // of a table, only the rows that a batch has named are updated
    {.name = "row_updates", .run = pass_row_updates},
    // a weight that every step of a sequence reads lies as they read it
    {.name = "pair_panels", .run = pass_pair_panels, .pairs = true},
    {.name = "panels", .run = pass_panels, .processor = true},
    // matmuls read bytes where they lie
    {.name = "integer_operands", .run = pass_integer_operands, .processor = true},
    // what is put together to be padded goes into the room at once
    {.name = "insert_parts", .run = pass_insert_parts},
    // no part of a value keeps the rest of it in memory for long
    {.name = "keep_parts", .run = pass_keep_parts},
    // kernels
    {"fuse", pass_fuse, .required = true, .grouped = true},
    {.name = "recompute", .run = pass_recompute, .grouped = true},
    {.name = "remake", .run = pass_remake, .grouped = true},
    {"order", pass_order, .required = true, .grouped = true},
    // one function for the step and for evaluation
    {.name = "alike", .run = pass_alike, .grouped = true},
    // what masks leave to compute
    {.name = "bands", .run = pass_bands, .grouped = true},
    {0},
};

bool pass_run_pipeline(ir_module *m, ir_diags *d, const pass_options *o) {
  pass_options both = o ? *o : (pass_options){0};
  both.others = pass_memory_pipeline;
  return pass_run(pass_pipeline, m, d, &both);
}

const pass_info pass_memory_pipeline[] = {
    // once more, now that workspaces count
    {"final_order", pass_final_order, .required = true, .grouped = true},
    {.name = "checkpoint", .run = pass_checkpoint, .grouped = true},
    {.name = "offload",
     .run = pass_offload,
     .grouped = true,
     .families = 1u << IR_FAMILY_SEND | 1u << IR_FAMILY_FETCH},
    {0},
};

bool pass_run_memory_pipeline(ir_module *m, ir_diags *d, const pass_options *o) {
  pass_options both = o ? *o : (pass_options){0};
  both.others = pass_pipeline;
  both.first_file = 50; // behind those of the first list, whatever rounds it took
  return pass_run(pass_memory_pipeline, m, d, &both);
}
