// data_names.c: the files that a data entry names: each as it is written, or, where no file is called so and the name has *
// or ?, all whose names fit it, in the order of their names: "train_*.bin".
//
// A pattern is one of the first folder that has any such file; what it stands for are absolute paths, which are looked for
// nowhere else.
#include "runtime/data_reader.h"
#include "runtime/files.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_pattern(const char *name) {
  return strpbrk(name, "*?") != NULL;
}

static bool add(mlrt_names *n, const char *name, mlrt_error *e) {
  char **more = realloc(n->at, (size_t)(n->num + 1) * sizeof *more);
  char *copy = more ? strdup(name) : NULL;
  n->at = more ? more : n->at;
  if (!copy)
    return mlrt_error_memory(e, "%s: no memory", name);
  n->at[n->num++] = copy;
  return true;
}

// The pattern within a folder, whose own name is none. False: too long.
static bool put_pattern(char out[PATH_MAX], const mlrt_folder *folder, const char *name) {
  size_t n = 0;
  for (int i = 0; i < folder->len && n + 2 < PATH_MAX; i++) {
    if (strchr("*?[\\", folder->at[i]))
      out[n++] = '\\';
    out[n++] = folder->at[i];
  }
  int rest = snprintf(out + n, PATH_MAX - n, "%s%s", folder->len ? "/" : "", name);
  return rest >= 0 && n + (size_t)rest < PATH_MAX;
}

// Adds what fits in this folder; false: an error. None is none.
static bool add_fitting(mlrt_names *n, const mlrt_folder *folder, const char *name, mlrt_error *e) {
  char pattern[PATH_MAX], path[PATH_MAX];
  glob_t found = {0};
  bool ok = true;
  if (!put_pattern(pattern, folder, name))
    return true;
  int status = glob(pattern, 0, NULL, &found);
  for (size_t i = 0; status == 0 && ok && i < found.gl_pathc; i++)
    ok = add(n, realpath(found.gl_pathv[i], path) ? path : found.gl_pathv[i], e);
  globfree(&found);
  return ok && (status == 0 || status == GLOB_NOMATCH ||
                mlrt_error_set(e, "%s: cannot be looked for in its folder", name));
}

static bool add_all(mlrt_names *n, const mlrt_program *p, const char *data_dir, const char *name,
                    mlrt_error *e) {
  mlrt_folder folders[MLRT_DATA_FOLDERS];
  int num = mlrt_data_folders(p, data_dir, name, folders), before = n->num;
  if (!is_pattern(name) || mlrt_file_is_there(p, data_dir, name))
    return add(n, name, e);
  for (int i = 0; i < num && n->num == before; i++)
    if (!add_fitting(n, &folders[i], name, e))
      return false;
  return n->num > before ||
         mlrt_error_set(
             e, "%s: no file has such a name\nhelp: give their folder with --data-dir=DIR", name);
}

bool mlrt_names_find(mlrt_names *n, const mlrt_program *p, const char *data_dir,
                     const mlrt_data *spec, mlrt_error *e) {
  *n = (mlrt_names){0};
  for (int i = 0; i < spec->num_files; i++)
    if (!add_all(n, p, data_dir, spec->files[i], e)) {
      mlrt_names_free(n);
      return false;
    }
  return true;
}

void mlrt_names_free(mlrt_names *n) {
  for (int i = 0; i < n->num; i++)
    free(n->at[i]);
  free(n->at);
  *n = (mlrt_names){0};
}

bool mlrt_data_is_at(const mlrt_program *p, const char *data_dir, const mlrt_data *spec,
                     const char *path) {
  mlrt_names n;
  mlrt_error ignored;
  bool found = false;
  if (!mlrt_names_find(&n, p, data_dir, spec, &ignored))
    return false;
  for (int i = 0; i < n.num && !found; i++)
    found = mlrt_file_is_at(p, data_dir, n.at[i], path);
  mlrt_names_free(&n);
  return found;
}
