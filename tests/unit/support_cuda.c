// support_cuda.c: see support_cuda.h.
#include "support_cuda.h"

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
