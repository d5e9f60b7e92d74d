// mltc-nvrtc: one call of NVRTC, in a process of its own. mltc runs several at a time, as it runs
// clang (cuda_toolchain.c); a crash of the compiler is a failed command.
//
//   mltc-nvrtc SOURCE.cu [--cubin=FILE] [--ptx=FILE] OPTION...       options are NVRTC's
//
// It runs without address space randomisation: NVRTC orders some instructions by the addresses of
// its own objects, so that each run would give another cubin (seen with NVRTC 13.0 for sm_90a), and
// equal input is to give equal output. Where the system does not allow that, cubins may differ in
// such orders; their results do not.
#include <errno.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "codegen/nvrtc.h"

enum { ASK = 0xffffffff, FAILED = 1, WRONG_USAGE = 2 };

// Begins again when it has to; goes on when it cannot.
static void fix_addresses(char **argv) {
  int now = personality((unsigned long)ASK);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE))
    return;
  if (personality((unsigned long)(now | ADDR_NO_RANDOMIZE)) != -1)
    execv("/proc/self/exe", argv);
}

static bool put(const char *path, const char *what, const char *data, size_t len) {
  if (!path)
    return true;
  if (!data) {
    fprintf(stderr, "NVRTC gave no %s\n", what);
    return false;
  }
  if (ir_write_file(path, data, len))
    return true;
  fprintf(stderr, "cannot write '%s': %s\n", path, strerror(errno));
  return false;
}

// The value of --NAME=VALUE; NULL when `arg` is another option.
static const char *value_of(const char *arg, const char *name) {
  size_t n = strlen(name);
  return strncmp(arg, name, n) == 0 ? arg + n : NULL;
}

static bool run(ir_arena *a, const char *source, int argc, char **argv) {
  IR_VEC(const char *) options = {0};
  const char *cubin = NULL, *ptx = NULL, *why = NULL, *slash = strrchr(source, '/');
  for (int i = 0; i < argc; i++)
    if (value_of(argv[i], "--cubin="))
      cubin = value_of(argv[i], "--cubin=");
    else if (value_of(argv[i], "--ptx="))
      ptx = value_of(argv[i], "--ptx=");
    else
      IR_PUSH(a, options, argv[i]);
  size_t len = 0;
  const char *text = ir_read_file(a, source, &len);
  const cg_nvrtc *n = text ? cg_nvrtc_open(a, &why) : NULL;
  if (!n) {
    fprintf(stderr, "%s: %s\n", source, text ? why : strerror(errno));
    return false;
  }
  cg_nvrtc_code code;
  bool ok =
      cg_nvrtc_compile(n, a, slash ? slash + 1 : source, text, options.at, (int)options.num, &code);
  fputs(code.log, stderr);
  return ok && put(cubin, "cubin", code.cubin, code.cubin_len) &&
         put(ptx, "PTX", code.ptx, code.ptx_len - 1); // the file does without the 0 byte
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: mltc-nvrtc SOURCE.cu [--cubin=FILE] [--ptx=FILE] OPTION...\n");
    return WRONG_USAGE;
  }
  fix_addresses(argv);
  ir_arena *a = ir_arena_new();
  bool ok = run(a, argv[1], argc - 2, argv + 2);
  ir_arena_free(a);
  return ok ? 0 : FAILED;
}
