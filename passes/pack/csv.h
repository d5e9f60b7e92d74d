// csv.h: packing instances as text: `id,lower,upper,size`, one interval a line.
#ifndef PASSES_PACK_CSV_H
#define PASSES_PACK_CSV_H

#include "ir/diag.h"
#include "passes/plan.h"

typedef struct pack_file {
  plan_interval *at;
  const char **id; // as in the file
  size_t num;
} pack_file;

// Columns in any order, by the names in the first line; `offset` may be there and is not read. False
// when there are errors: all of them are in `d`, with their places.
bool pack_read_csv(ir_arena *a, const ir_source *source, ir_diags *d, pack_file *out);
// The same lines, with offsets.
void pack_write_csv(const pack_file *f, ir_buf *out);

#endif
