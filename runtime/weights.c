// weights.c: see weights.h. Nothing of the device is needed here (weights_load.c reads the data).
#include "runtime/weights.h"
#include "runtime/number_io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_weight(const mlrt_tensor *t) {
  return t->role == MLRT_PARAM || t->role == MLRT_FROZEN || t->role == MLRT_BUFFER;
}

// Between floating-point types, or as it is.
static bool suits(const mlrt_st_tensor *x, const mlrt_tensor *t) {
  mlrt_dtype type;
  if (!mlrt_same_shape(x, t) || !mlrt_st_dtype_of(x->dtype, &type))
    return false;
  return type == t->dtype || (mlrt_is_float(type) && mlrt_is_float(t->dtype));
}

// In the file: it, or else what it begins as.
static const mlrt_st_tensor *find(const mlrt_weights *w, const mlrt_tensor *t) {
  const mlrt_st_tensor *x = mlrt_st_find(&w->header, t->name);
  return x || !t->as ? x : mlrt_st_find(&w->header, t->as);
}

const mlrt_st_tensor *mlrt_weights_find(const mlrt_weights *w, const mlrt_tensor *t) {
  const mlrt_st_tensor *x = is_weight(t) ? find(w, t) : NULL;
  return x && suits(x, t) ? x : NULL;
}

static void match_states(mlrt_weights *w, const mlrt_program *p, bool *used) {
  mlrt_finding missing = {"missing in the file", 0}, different = {"different", 0};
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *t = &p->states[i];
    if (!is_weight(t))
      continue;
    const mlrt_st_tensor *x = find(w, t);
    if (x)
      used[x - w->header.tensors] = true;
    if (!x) {
      w->frozen_missing += t->role == MLRT_FROZEN;
      if (mlrt_report_add(&w->report, &missing, t->name) && t->role == MLRT_FROZEN)
        mlrt_report_say(&w->report, " (frozen)");
    } else if (suits(x, t)) {
      w->loaded++;
      w->converted += !mlrt_same_type(x, t);
    } else if (mlrt_report_add(&w->report, &different, t->name)) {
      mlrt_report_types(&w->report, x, t);
    }
  }
  mlrt_report_more(&w->report, &missing);
  mlrt_report_more(&w->report, &different);
  w->missing = missing.num;
  w->different = different.num;
}

// An optimiser's state is called like what it is of, and more: "linear.w.m".
static bool is_of_another(const mlrt_weights *w, const char *name) {
  const char *end = strrchr(name, '.');
  size_t length = end ? (size_t)(end - name) : 0;
  for (int i = 0; end && i < w->header.num_tensors; i++) {
    const char *other = w->header.tensors[i].name;
    if (!strncmp(other, name, length) && strlen(other) == length)
      return true;
  }
  return false;
}

bool mlrt_weights_match(mlrt_weights *w, const mlrt_program *p, mlrt_error *e) {
  bool *used = calloc((size_t)w->header.num_tensors + 1, sizeof *used);
  mlrt_finding unused = {"not used", 0};
  if (!used)
    return mlrt_error_memory(e, "out of memory");
  match_states(w, p, used);
  for (int of_another = 0; of_another < 2; of_another++) // last: only so many are listed
    for (int i = 0; i < w->header.num_tensors; i++)
      if (!used[i] && is_of_another(w, w->header.tensors[i].name) == of_another)
        mlrt_report_add(&w->report, &unused, w->header.tensors[i].name);
  mlrt_report_more(&w->report, &unused);
  w->unused = unused.num;
  free(used);
  return true;
}

bool mlrt_weights_suit(const mlrt_weights *w, bool allow_missing, mlrt_error *e) {
  if (w->different)
    return mlrt_error_set(e, "shapes or types differ%s", w->report.text);
  if (!w->loaded)
    return mlrt_error_set(e, "none of its names is a parameter's%s", w->report.text);
  if (w->missing && !allow_missing)
    return mlrt_error_set(e,
                          "parameters are missing%s\nhelp: --allow-missing lets trained ones keep "
                          "their initial values",
                          w->report.text);
  if (w->frozen_missing)
    return mlrt_error_set(e, "frozen parameters are missing, which nothing would ever train%s",
                          w->report.text);
  return true;
}

bool mlrt_weights_convert(char *to, mlrt_dtype to_type, const char *from, mlrt_dtype from_type,
                          int64_t num) {
  int to_bytes = mlrt_dtype_bytes(to_type), from_bytes = mlrt_dtype_bytes(from_type);
  if (to_type == from_type) {
    // A double does not hold all integers of 64 bits, nor what a nan carries.
    memcpy(to, from, (size_t)(num * to_bytes));
    return true;
  }
  bool fits = true;
  for (int64_t i = 0; i < num; i++) {
    double v = mlrt_load(from + i * from_bytes, from_type);
    mlrt_store(to + i * to_bytes, to_type, v);
    fits &= !isfinite(v) || isfinite(mlrt_load(to + i * to_bytes, to_type));
  }
  return fits;
}
