// ptxas.c: see ptxas.h.
#include "codegen/ptxas.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// From the folder of the library. In an installation lib64 is a link into targets/x86_64-linux/lib;
// a distribution's package has /usr/lib/x86_64-linux-gnu; wheels of CUDA 12 have a folder each.
static const char *const places[] = {"/../bin/ptxas", "/../../bin/ptxas", "/../../../bin/ptxas",
                                     "/../../cuda_nvcc/bin/ptxas"};
enum { NUM_PLACES = sizeof places / sizeof *places };

static const char *find_from(ir_arena *a, const char *lib) {
  const char *slash = lib ? strrchr(lib, '/') : NULL;
  for (int i = 0; slash && i < NUM_PLACES; i++) {
    const char *at = ir_format(a, "%.*s%s", (int)(slash - lib), lib, places[i]);
    if (cg_find_program(a, at))
      return at;
  }
  return NULL;
}

static const char *find(ir_arena *a, const char *lib) {
  const char *at = find_from(a, lib);
  char *real = at || !lib ? NULL : realpath(lib, NULL);
  if (real)
    at = find_from(a, ir_strdup(a, real));
  free(real);
  return at;
}

// It says "Cuda compilation tools, release 13.0, V13.0.88".
static bool is_of_version(const cg_tools *x, const char *path, const char *version) {
  cg_command ask = {0};
  cg_command_add(&ask, path);
  cg_command_add(&ask, "--version");
  const char *said = cg_ask(x, "ptxas", &ask);
  return said && strstr(said, ir_format(x->a, "release %s,", version));
}

const cg_ptxas *cg_ptxas_find(const cg_tools *x, const char *nvrtc, const char *version) {
  const char *path = find(x->a, nvrtc);
  if (!path || !is_of_version(x, path, version))
    return NULL;
  cg_ptxas *p = IR_NEW(x->a, cg_ptxas);
  *p = (cg_ptxas){path, ir_format(x->a, "ptxas %s, %s", version, cg_file_stamp(x->a, path))};
  return p;
}

cg_command cg_ptxas_command(const cg_ptxas *p, ir_arena *a, const char *arch, const char *from,
                            const char *to, bool in_order) {
  cg_command c = {0};
  cg_command_add(&c, p->path);
  if (in_order)
    cg_command_add(&c, CG_PTXAS_IN_ORDER);
  cg_command_add(&c, "--warn-on-spills");
  cg_command_add(&c, ir_format(a, "--gpu-name=%s", arch));
  cg_command_add(&c, from);
  cg_command_add(&c, "--output-file");
  cg_command_add(&c, to);
  return c;
}
