// test_ptxas.c: an assembler is found from where NVRTC is, in all layouts of folders that are known, of NVRTC's version
// only; a new file of the same version is another one to the cache.
#include "codegen/ptxas.h"
#include "support_cuda.h"
#include "support_ir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_folders(ir_arena *a, const char *file) {
  for (const char *s = file + 1; (s = strchr(s, '/')); s++)
    mkdir(ir_format(a, "%.*s", (int)(s - file), file), 0777);
}

static void write_script(ir_arena *a, const char *path, const char *more) {
  const char *text =
      ir_format(a, "#!/bin/sh\necho Cuda compilation tools, release 13.10, V13.10.88\n%s", more);
  make_folders(a, path);
  ir_write_file(path, text, strlen(text));
  chmod(path, 0777);
}

static const cg_ptxas *find(ir_arena *a, const char *lib, const char *dir, const char *version) {
  const char *why = "";
  cg_build b = {0};
  const cg_tools x = {.a = a, .b = &b, .dir = dir, .why = &why};
  return cg_ptxas_find(&x, lib, version);
}

static const struct {
  const char *lib, *ptxas, *version;
  bool found;
} cases[] = {
    {"lib64", "bin/ptxas", "13.10", true},
    {"lib/x86_64-linux-gnu", "bin/ptxas", "13.10", true},
    {"targets/x86_64-linux/lib", "bin/ptxas", "13.10", true},
    {"nvidia/cuda_nvrtc/lib", "nvidia/cuda_nvcc/bin/ptxas", "13.10", true},
    {"lib64", "bin/ptxas", "13.1", false},
    {"lib64", "bin/ptxas", "3.10", false},
    {"lib64", "other/ptxas", "13.10", false},
};

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *folder = support_new_folder(a);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *root = ir_format(a, "%s/%zu", folder, i);
    const char *lib = ir_format(a, "%s/%s/libnvrtc.so", root, cases[i].lib);
    make_folders(a, lib);
    write_script(a, ir_format(a, "%s/%s", root, cases[i].ptxas), "");
    CHECK((find(a, lib, folder, cases[i].version) != NULL) == cases[i].found, "%s, %s, %s",
          cases[i].lib, cases[i].ptxas, cases[i].version);
  }
  // A link to the library, elsewhere; and another file of that version.
  const char *real = ir_format(a, "%s/0/lib64/libnvrtc.so", folder);
  const char *link = ir_format(a, "%s/link/a/b/c/libnvrtc.so", folder);
  ir_write_file(real, "", 0);
  make_folders(a, link);
  CHECK(symlink(real, link) == 0, "no link");
  const cg_ptxas *one = find(a, link, folder, "13.10");
  write_script(a, ir_format(a, "%s/0/bin/ptxas", folder), "exit 0 # newer\n");
  const cg_ptxas *two = find(a, link, folder, "13.10");
  CHECK(one && two && strcmp(one->identity, two->identity) != 0, "%s",
        one ? one->identity : "not found behind a link");
  CHECK(!find(a, NULL, folder, "13.10"), "without a library");
  cg_command c = cg_ptxas_command(one, a, "sm_90a", "from.ptx", "to.cubin", false);
  CHECK(!strcmp(c.argv[1], "--warn-on-spills"), "spills are not said");
  c = cg_ptxas_command(one, a, "sm_90a", "from.ptx", "to.cubin", true);
  CHECK(!strcmp(c.argv[1], CG_PTXAS_IN_ORDER), "the order is not kept");
  support_remove_folder(a, folder);
  ir_arena_free(a);
  return support_finish("test_ptxas");
}
