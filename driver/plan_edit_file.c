// plan_edit_file.c: see plan_edit_file.h.
#include "driver/plan_edit_file.h"

#include <string.h>

#include "driver/plan_file.h"

static plan_edit_kernel kernel_of(const plan_item *k) {
  const char *family = k->family ? k->family : "";
  return (plan_edit_kernel){.name = k->name,
                            .again = k->again,
                            .begin = k->begin,
                            .transfer = !strcmp(family, "send")    ? PLAN_EDIT_SEND
                                        : !strcmp(family, "fetch") ? PLAN_EDIT_FETCH
                                                                   : PLAN_EDIT_NONE,
                            .reads = k->reads,
                            .writes = k->writes};
}

static plan_edit_func func_of(ir_arena *a, const plan_file_func *f) {
  plan_edit_func out = {.name = f->name};
  for (size_t i = 0; i < f->kernels.num; i++) {
    IR_PUSH(a, out.kernels, kernel_of(&f->kernels.at[i]));
  }
  for (size_t i = 0; i < f->buffers.num; i++) {
    plan_edit_place p = {f->buffers.at[i].name, f->buffers.at[i].offset};
    if (p.offset >= 0)
      IR_PUSH(a, out.places, p);
  }
  return out;
}

const plan_edit *plan_edit_read(ir_arena *a, const char *path, const char **why) {
  const plan_file *file = plan_file_open(a, PLAN_FILE_EDITED, path, why);
  if (!file)
    return NULL;
  for (size_t i = 0; i < file->figures.num; i++)
    if (!strcmp(file->figures.at[i].name, "micro_batches")) {
      *why = ir_format(
          a,
          "%s: a plan of micro-batches (--allow=accumulate): --plan takes plans of whole batches",
          path);
      return NULL;
    }
  plan_edit *e = IR_NEW(a, plan_edit);
  e->path = path;
  e->remakes_little = file->remake != NULL;
  for (size_t i = 0; i < file->funcs.num; i++) {
    plan_edit_func f = func_of(a, &file->funcs.at[i]);
    IR_PUSH(a, e->funcs, f);
  }
  return e;
}
