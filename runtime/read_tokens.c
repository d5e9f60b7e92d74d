// read_tokens.c: files of token ids, u16 or u32, little-endian, as nanoGPT and llm.c write them.
//
// llm.c puts a header of 256 u32 before them: a magic number, a version, the number of ids. The
// magic says the width: 20240520 u16 (GPT-2), 20240801 with version 7 u32 (Llama 3). nanoGPT
// writes no header.
#include "runtime/data_reader.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC_U16 = 20240520, MAGIC_U32 = 20240801, HEADER_BYTES = 1024 };
enum { HEADER_NO, HEADER_YES, HEADER_AUTO };

typedef struct token_row {
  int64_t offset, count;
  mlrt_stored stored;
} token_row;

static uint32_t le32(const uint8_t *at) {
  uint32_t v;
  memcpy(&v, at, 4); // trainers are little-endian
  return v;
}

static bool has_magic(const mlrt_file *f) {
  if (f->len < 4)
    return false;
  uint32_t magic = le32(f->data);
  return magic == MAGIC_U16 || magic == MAGIC_U32;
}

static int64_t tokens_need(const uint8_t *head, int64_t len) {
  mlrt_file f = {.data = (uint8_t *)head, .len = len};
  if (len < HEADER_BYTES || !has_magic(&f))
    return INT64_MAX;
  return HEADER_BYTES + (int64_t)le32(head + 8) * (le32(head) == MAGIC_U16 ? 2 : 4);
}

static bool read_header(mlrt_reading *r, const mlrt_file *f, token_row *ids) {
  if (f->len < HEADER_BYTES)
    return mlrt_error_set(r->error, "%s: is cut off inside its 1024-byte header (%lld bytes)",
                          f->name, (long long)f->len);
  if (!has_magic(f))
    return mlrt_error_set(r->error, "%s: its header begins with %u, not with %d or %d", f->name,
                          le32(f->data), MAGIC_U16, MAGIC_U32);
  uint32_t version = le32(f->data + 4);
  uint32_t expected = le32(f->data) == MAGIC_U16 ? 1 : 7;
  if (version != expected)
    return mlrt_error_set(r->error, "%s: version %u of the header is not known (only %u)", f->name,
                          version, expected);
  ids->stored = le32(f->data) == MAGIC_U16 ? MLRT_ST_U16 : MLRT_ST_U32;
  ids->offset = HEADER_BYTES;
  ids->count = le32(f->data + 8);
  return true;
}

// The rest of the file must be exactly `count` ids, or, without a header, whole ids.
static bool check_length(mlrt_reading *r, const mlrt_file *f, token_row *ids) {
  int64_t bytes = mlrt_stored_bytes(ids->stored), rest = f->len - ids->offset;
  if (ids->offset == 0)
    ids->count = rest / bytes;
  if (ids->count * bytes == rest)
    return true;
  if (ids->offset == 0)
    return mlrt_error_set(r->error, "%s: %lld bytes are no whole number of ids of %lld bytes",
                          f->name, (long long)rest, (long long)bytes);
  return mlrt_error_set(r->error,
                        "%s: its header says %lld ids (%lld bytes), but %lld bytes follow", f->name,
                        (long long)ids->count, (long long)(ids->count * bytes), (long long)rest);
}

static bool apply_dtype(mlrt_reading *r, const mlrt_file *f, token_row *ids, int wanted) {
  static const mlrt_stored stored[] = {MLRT_ST_U16, MLRT_ST_U32};
  if (wanted < 0)
    return true;
  if (ids->offset > 0 && ids->stored != stored[wanted])
    return mlrt_error_set(r->error, "%s: its header says %s ids, the data entry %s", f->name,
                          wanted ? "u16" : "u32", wanted ? "u32" : "u16");
  ids->stored = stored[wanted];
  return true;
}

// Ids below 65536 of four bytes each, read as those of two: all fit, and every second one is 0.
static bool looks_wide(const mlrt_file *f, const token_row *ids) {
  enum { FEWEST = 32, MOST = 4096 };
  int64_t pairs = ids->count / 2 < MOST ? ids->count / 2 : MOST, filled = 0;
  for (int64_t i = 0; i < pairs; i++) {
    uint32_t id = le32(f->data + 4 * i);
    if (id > UINT16_MAX)
      return false;
    filled += id != 0;
  }
  return pairs >= FEWEST && filled > pairs / 2;
}

static bool check_width(mlrt_reading *r, const mlrt_file *f, const token_row *ids, int wanted) {
  return wanted >= 0 || ids->offset > 0 || !looks_wide(f, ids) ||
         mlrt_error_set(r->error,
                        "%s: every second id of two bytes is 0, as in a file of ids of four\n"
                        "help: add dtype=\"u32\", or dtype=\"u16\" if that is what it holds",
                        f->name);
}

typedef struct wanted {
  int dtype, header; // -1, HEADER_AUTO: as the file says
} wanted;

static bool read_row(mlrt_reading *r, int i, const wanted *w, token_row *row) {
  if (!mlrt_reading_open(r, i, tokens_need))
    return false;
  const mlrt_file *f = &r->set->files[i];
  *row = (token_row){.stored = MLRT_ST_U16};
  bool headed = w->header == HEADER_YES || (w->header == HEADER_AUTO && has_magic(f));
  return (!headed || read_header(r, f, row)) && apply_dtype(r, f, row, w->dtype) &&
         check_length(r, f, row) && check_width(r, f, row, w->dtype);
}

static bool read_rows(mlrt_reading *r, const wanted *w, mlrt_id_row *rows, mlrt_stored *stored) {
  const mlrt_dataset *d = r->set;
  for (int i = 0; i < d->num_files; i++) {
    token_row row;
    if (!read_row(r, i, w, &row))
      return false;
    if (i > 0 && row.stored != *stored)
      return mlrt_error_set(r->error, "%s: ids of %d bytes, and %s has ids of %d", d->files[i].name,
                            mlrt_stored_bytes(row.stored), d->files[0].name,
                            mlrt_stored_bytes(*stored));
    *stored = row.stored;
    rows[i] = (mlrt_id_row){row.offset, row.count};
  }
  return true;
}

bool mlrt_read_tokens(mlrt_reading *r) {
  static const char *const keys[] = {"dtype", "header", "window", "stride", "lanes", NULL};
  static const char *const dtypes[] = {"u16", "u32", NULL};
  wanted w = {-1, HEADER_AUTO};
  if (!mlrt_settings_check(r, keys) || !mlrt_setting_choice(r, "dtype", dtypes, &w.dtype) ||
      !mlrt_setting_bool(r, "header", &w.header))
    return false;
  mlrt_id_row *rows = calloc((size_t)r->set->num_files, sizeof *rows);
  mlrt_ids ids = {.rows = rows};
  bool ok = rows || mlrt_error_memory(r->error, "no memory");
  ok = ok && read_rows(r, &w, rows, &ids.stored) && mlrt_ids_to_fields(r, &ids);
  free(rows);
  return ok;
}
