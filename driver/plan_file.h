// plan_file.h: a plan.json (docs/memory.md) as it is compared: names with sizes.
#ifndef DRIVER_PLAN_FILE_H
#define DRIVER_PLAN_FILE_H

#include "passes/plan_edit.h"

// A figure, a buffer (bytes) or a kernel (FLOPs).
typedef struct plan_item {
  const char *name;
  int64_t size;
  const char *rest;              // all else that is known of it, as one text; NULL: nothing
  const char *again;             // kernels: the one that it repeats; NULL: none
  const char *family, *begin;    // kernels; begin: of a transfer, or NULL
  plan_edit_names reads, writes; // kernels: names of buffers
  int64_t offset;                // buffers; -1: the file says none
} plan_item;
typedef IR_VEC(plan_item) plan_items;

typedef struct plan_file_func {
  const char *name;
  plan_items figures, shares, kernels, buffers; // kernels in order
  plan_items host, copies; // buffers in memory of the host; copies by their states
} plan_file_func;

typedef struct plan_file {
  const char *path, *model;
  const char *remake; // "little": of the kernels of that setting (passes/pass.h); NULL
  plan_items figures, shares, buffers;
  IR_VEC(plan_file_func) funcs;
} plan_file;

// Of what is edited only the order of kernels and the offsets count: all other fields may be missing.
typedef enum plan_file_use { PLAN_FILE_COMPARED, PLAN_FILE_EDITED } plan_file_use;

// NULL with the reason in *why ("a.json:3: ...") when this is no plan, or one of another version.
// Fields that version 1 has got later may be missing.
const plan_file *plan_file_read(ir_arena *a, plan_file_use use, const char *path, const char *text,
                                size_t len, const char **why);
// The same of a file.
const plan_file *plan_file_open(ir_arena *a, plan_file_use use, const char *path, const char **why);

#endif
