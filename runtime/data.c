// data.c: opens a dataset with the reader of its format, hands out samples (see data.h).
#include "runtime/data_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct format {
  const char *name;
  bool (*read)(mlrt_reading *r);
} format;

static const format formats[] = {
    {"idx", mlrt_read_idx},   {"csv", mlrt_read_csv},       {"npy", mlrt_read_npy},
    {"text", mlrt_read_text}, {"tokens", mlrt_read_tokens}, {NULL, NULL},
};

static bool read_format(mlrt_reading *r) {
  for (const format *f = formats; f->name; f++)
    if (strcmp(f->name, r->spec->format) == 0)
      return f->read(r);
  return mlrt_error_set(r->error, "unknown format `%s` (there are idx, csv, npy, text, tokens)",
                        r->spec->format);
}

int64_t mlrt_input_elements(const mlrt_input *in) {
  int64_t n = 1;
  for (int i = 1; i < in->rank; i++)
    n *= in->dims[i];
  return n;
}

bool mlrt_reading_open(mlrt_reading *r, int i, mlrt_need_fn need) {
  return mlrt_file_open(&r->set->files[i], r->program, r->data_dir, r->names.at[i], need, r->error);
}

bool mlrt_reading_open_text(mlrt_reading *r, int i) {
  static const struct {
    const char *begins, *by;
    size_t len;
  } packed[] = {{"\xfd\x37zXZ\0", "xz", 6},
                {"\x28\xb5\x2f\xfd", "zstd", 4},
                {"BZh91AY&SY", "bzip2", 10},
                {"PK\x03\x04", "zip", 4},
                {"7z\xbc\xaf\x27\x1c", "7-zip", 6},
                {"\x1f\x8b\x08", "gzip, twice", 3}}; // once it is unpacked by now
  if (!mlrt_reading_open(r, i, NULL))
    return false;
  const mlrt_file *f = &r->set->files[i];
  for (size_t k = 0; k < sizeof packed / sizeof packed[0]; k++)
    if ((size_t)f->len >= packed[k].len && !memcmp(f->data, packed[k].begins, packed[k].len))
      return mlrt_error_set(r->error,
                            "%s: is packed by %s\nhelp: unpack it; only .gz is read packed",
                            f->name, packed[k].by);
  return true;
}

static mlrt_dataset *dataset_new(const mlrt_program *p, const mlrt_data *spec, int num_files) {
  mlrt_dataset *d = calloc(1, sizeof *d);
  if (!d)
    return NULL;
  d->name = spec->name;
  d->num_fields = p->num_inputs;
  d->fields = calloc((size_t)p->num_inputs + 1, sizeof *d->fields);
  d->num_files = num_files;
  d->files = calloc((size_t)num_files + 1, sizeof *d->files);
  d->parts = calloc((size_t)num_files * (size_t)p->num_inputs + 1, sizeof *d->parts);
  if (!d->fields || !d->files || !d->parts) {
    mlrt_data_close(d);
    return NULL;
  }
  for (int i = 0; i < p->num_inputs; i++)
    d->fields[i].input = &p->inputs[i];
  return d;
}

static bool check_entry(const mlrt_program *p, const mlrt_data *spec, mlrt_error *e) {
  if (spec->num_files < 1)
    return mlrt_error_set(e, "no file is named");
  if (p->num_inputs < 1)
    return mlrt_error_set(e, "the model has no inputs");
  for (int i = 0; i < p->num_inputs; i++)
    if (p->inputs[i].rank < 1)
      return mlrt_error_set(e, "input `%s` is a scalar: it has no batch axis to fill",
                            p->inputs[i].name);
  return true;
}

mlrt_dataset *mlrt_data_open(const mlrt_program *p, const mlrt_data *spec, mlrt_use use,
                             const char *data_dir, const mlrt_flag_values *flags,
                             const mlrt_known_characters *known, mlrt_error *e) {
  mlrt_reading r = {.program = p,
                    .spec = spec,
                    .use = use,
                    .data_dir = data_dir,
                    .flags = flags,
                    .known = known,
                    .error = e};
  bool ok = check_entry(p, spec, e) && mlrt_names_find(&r.names, p, data_dir, spec, e);
  if (ok && !(r.set = dataset_new(p, spec, r.names.num)))
    ok = mlrt_error_memory(e, "no memory");
  ok = ok && read_format(&r);
  mlrt_names_free(&r.names);
  if (ok)
    return r.set;
  mlrt_data_close(r.set);
  mlrt_error_prefix(e, "data `%s`", spec->name);
  return NULL;
}

void mlrt_data_close(mlrt_dataset *d) {
  if (!d)
    return;
  for (int i = 0; d->files && i < d->num_files; i++)
    mlrt_file_close(&d->files[i]);
  if (d->parsed)
    munmap(d->parsed, (size_t)d->parsed_bytes);
  free(d->files);
  free(d->parts);
  free(d->fields);
  free(d);
}

const char *mlrt_data_name(const mlrt_dataset *d) {
  return d->name;
}

const mlrt_characters *mlrt_data_characters(const mlrt_dataset *d) {
  return &d->characters;
}

int64_t mlrt_data_size(const mlrt_dataset *d) {
  return d->size;
}

int mlrt_data_files(const mlrt_dataset *d) {
  return d->fields[0].num_parts ? d->fields[0].num_parts : 1;
}

int64_t mlrt_data_resident_bytes(const mlrt_dataset *d) {
  int64_t total = d->parsed_bytes;
  for (int i = 0; i < d->num_files; i++)
    if (d->files[i].memory == MLRT_MEM_PRIVATE)
      total += d->files[i].map_bytes;
  return total;
}

static int64_t row_bytes(const mlrt_field *f) {
  return f->elements * mlrt_dtype_bytes(f->input->dtype);
}

bool mlrt_data_copy(const mlrt_dataset *d, int64_t index, int64_t row, char *const *input_ptrs,
                    mlrt_error *e) {
  for (int i = 0; i < d->num_fields; i++)
    if (!mlrt_field_copy(&d->fields[i], index, input_ptrs[i] + row * row_bytes(&d->fields[i]), e))
      return mlrt_error_prefix(e, "data `%s`", d->name);
  return true;
}

bool mlrt_data_fill(const mlrt_dataset *d, const int64_t *sample_index, int64_t n,
                    char *const *input_ptrs, mlrt_error *e) {
  for (int64_t row = 0; row < n; row++)
    if (!mlrt_data_copy(d, sample_index[row], row, input_ptrs, e))
      return false;
  return true;
}

void mlrt_data_prefetch(const mlrt_dataset *d, int64_t index) {
  enum { LINE = 64 };
  for (int i = 0; i < d->num_fields; i++) {
    const mlrt_field *f = &d->fields[i];
    const uint8_t *at = mlrt_field_at(f, index);
    const uint8_t *end = at + f->elements * mlrt_stored_bytes(f->stored);
    for (; at < end; at += LINE)
      __builtin_prefetch(at);
  }
}

int64_t mlrt_data_sample_bytes(const mlrt_dataset *d) {
  int64_t bytes = 0;
  for (int i = 0; i < d->num_fields; i++)
    bytes += row_bytes(&d->fields[i]);
  return bytes;
}
