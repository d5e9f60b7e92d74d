// info.c: `./trainer info`: what is inside this program, without running it.
#include "runtime/commands.h"
#include "runtime/number_io.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *role_name(mlrt_role r) {
  static const char *const names[] = {"parameter", "frozen", "buffer", "moment",
                                      "counter",   "seed",   "flag",   "accumulator"};
  return names[r];
}

static void format_shape(char *out, size_t cap, const mlrt_tensor *t) {
  size_t len = (size_t)snprintf(out, cap, "%s[", mlrt_st_dtype(t->dtype));
  for (int i = 0; i < t->rank && len < cap; i++)
    len += (size_t)snprintf(out + len, cap - len, "%s%" PRId64, i ? "," : "", t->dims[i]);
  if (len < cap)
    snprintf(out + len, cap - len, "]");
}

static void print_origin(const mlrt_program *p) {
  printf("model      %s\n", p->model);
  printf("source     %s (hash %016" PRIx64 ")\n", p->source_path, p->source_hash);
  printf("compiler   %s\n", p->compiler);
  printf("target     %s\n", p->target);
  printf("options    %s\n", p->options && *p->options ? p->options : "none");
  printf("plan hash  %016" PRIx64 "\n", p->plan_hash);
}

static void print_states(const mlrt_program *p) {
  int width = 5;
  for (int i = 0; i < p->num_states; i++)
    if ((int)strlen(p->states[i].name) > width)
      width = (int)strlen(p->states[i].name);
  printf("\n%-*s  %-22s %-12s %14s  %s\n", width, "state", "type", "role", "bytes", "from");
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *t = &p->states[i];
    char shape[128];
    format_shape(shape, sizeof shape, t);
    printf("%-*s  %-22s %-12s %14" PRId64 "  %s\n", width, t->name, shape, role_name(t->role),
           t->bytes, t->where ? t->where : "");
  }
}

static void print_totals(const mlrt_program *p) {
  int64_t elements = 0, parameter_bytes = 0, moment_bytes = 0;
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *t = &p->states[i];
    if (t->role == MLRT_PARAM || t->role == MLRT_FROZEN) {
      elements += t->bytes / mlrt_dtype_bytes(t->dtype);
      parameter_bytes += t->bytes;
    } else if (t->role == MLRT_MOMENT)
      moment_bytes += t->bytes;
  }
  printf("\nparameters %" PRId64 " (%" PRId64 " bytes), optimiser state %" PRId64 " bytes\n",
         elements, parameter_bytes, moment_bytes);
  printf("memory     %" PRId64 " bytes: states %" PRId64 ", batches %" PRId64
         ", temporaries %" PRId64 "\n",
         p->arena_bytes, p->state_bytes, p->staging_bytes, p->temp_bytes);
  mlrt_device_for(p).calls->print_code(p);
}

static void print_flags(const mlrt_options *o) {
  for (int i = 0; i < o->num_flags; i++) {
    const mlrt_flag *f = &o->flags[i];
    int digits = mlrt_flag_digits(f);
    printf("flag       --%s=%.*g (default %.*g)\n", f->state->name, digits, f->value, digits,
           f->state->value);
  }
}

static void print_setting(const mlrt_setting *s) {
  switch (s->kind) {
  case MLRT_SET_NUM:
    printf(" %s=%.*g", s->key, s->num == floor(s->num) ? 17 : 9, s->num);
    break;
  case MLRT_SET_STR:
    printf(" %s=%s", s->key, s->str);
    break;
  case MLRT_SET_FLAG:
    printf(" %s=--%s", s->key, s->str);
    break;
  }
}

static bool is_embedded(const mlrt_program *p, const char *file) {
  for (int i = 0; i < p->num_embedded; i++)
    if (!strcmp(p->embedded[i].name, file))
      return true;
  return false;
}

static void print_data(const mlrt_program *p) {
  for (int i = 0; i < p->num_data; i++) {
    const mlrt_data *d = &p->data[i];
    printf("data       %s = %s", d->name, d->format);
    for (int k = 0; k < d->num_files; k++)
      printf(" %s%s", d->files[k], is_embedded(p, d->files[k]) ? " (inside)" : "");
    for (int k = 0; k < d->num_settings; k++)
      print_setting(&d->settings[k]);
    putchar('\n');
  }
  printf("loop      ");
  for (int k = 0; k < p->num_config; k++)
    print_setting(&p->config[k]);
  putchar('\n');
}

static void print_plan(const mlrt_program *p) {
  uLongf len = p->plan_len;
  char *text = p->plan_len ? malloc(p->plan_len) : NULL;
  if (text && uncompress((Bytef *)text, &len, p->plan_packed, p->plan_packed_len) == Z_OK)
    printf("\n%.*s", (int)len, text);
  free(text);
}

int mlrt_info(const mlrt_program *p, mlrt_options *o) {
  print_origin(p);
  print_flags(o);
  print_data(p);
  print_states(p);
  print_totals(p);
  print_plan(p);
  return MLRT_EXIT_OK;
}
