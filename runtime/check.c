// check.c: `./trainer check`: does this program do on this machine what it should?
#include "runtime/commands.h"

int mlrt_check(const mlrt_program *p, mlrt_options *o) {
  int failures = mlrt_check_kernels(p, o);
  failures += mlrt_check_gradients(p, o);
  failures += mlrt_check_program(p, o);
  printf(failures ? "%d checks FAILED\n" : "all checks passed\n", failures);
  return failures ? MLRT_EXIT_INPUT : MLRT_EXIT_OK;
}
