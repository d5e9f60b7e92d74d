// support_cuda.c: see support_cuda.h.
#include "support_cuda.h"

#include "codegen/cuda_toolchain.h"
#include "tests/unit/support_passes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *support_new_folder(ir_arena *a) {
  const char *tmp = getenv("TMPDIR");
  char *name = ir_format(a, "%s/mltc-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  BUG_IF(!mkdtemp(name), "no folder %s", name);
  return name;
}

void support_remove_folder(ir_arena *a, const char *folder) {
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
        unlinkat(dirfd(d), e->d_name, 0) != 0)
      support_remove_folder(a, ir_format(a, "%s/%s", folder, e->d_name));
  if (d)
    closedir(d);
  rmdir(folder);
}

int support_count_files(const char *folder, const char *suffix) {
  DIR *d = opendir(folder);
  int num = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    size_t n = strlen(e->d_name), m = strlen(suffix);
    num += n >= m && !strcmp(e->d_name + n - m, suffix);
  }
  if (d)
    closedir(d);
  return num;
}

const cg_nvrtc *support_nvrtc(ir_arena *a) {
  const char *why = NULL;
  const cg_nvrtc *n = cg_nvrtc_open(a, &why);
  if (!n)
    printf("skipped: %s\n", why);
  return n;
}

static cg_nvrtc_code compiled(ir_arena *a, const cg_nvrtc *n, const char *text, const char *arch,
                              bool in_order) {
  int num;
  const char *const *told = cg_nvrtc_options(&num);
  const char **options = IR_NEW_ARRAY(a, const char *, (size_t)num + 2);
  memcpy(options, told, (size_t)num * sizeof *told);
  options[num++] = ir_format(a, "--gpu-architecture=%s", arch);
  if (in_order)
    options[num++] = CG_NVRTC_IN_ORDER;
  cg_nvrtc_code code = {0};
  if (!cg_nvrtc_compile(n, a, "kernels.cu", text, options, num, &code) || code.log[0])
    test_fail("%s: %s", arch, code.log);
  return code;
}

cg_resource_list support_cubin(ir_arena *a, const cg_nvrtc *n, const char *text, const char *arch,
                               bool in_order, const char *but) {
  cg_nvrtc_code code = compiled(a, n, text, arch, in_order);
  cg_resource_list list = {0};
  const char *why = "no kernels";
  if (code.cubin && (!cg_cubin_resources(a, code.cubin, code.cubin_len, &list, &why) || !list.num))
    test_fail("%s: %s", arch, why);
  for (size_t i = 0; i < list.num; i++) {
    const cg_resources *r = &list.at[i];
    if ((r->frame || r->stack) && !(but && strstr(r->kernel, but)))
      test_fail("%s for %s: %lld bytes of local memory", r->kernel, arch,
                (long long)(r->frame + r->stack));
  }
  return list;
}

const cg_resources *support_find_kernel(const cg_resource_list *list, const char *name) {
  for (size_t i = 0; i < list->num; i++)
    if (strcmp(list->at[i].kernel, name) == 0)
      return &list->at[i];
  test_fail("%s is not there", name);
  return NULL;
}
