// read_text.c: a text as a row of byte ids, cut into windows.
//
// vocab=chars (default): the distinct bytes of the whole file, sorted, are ids 0, 1, ... as in
// nanoGPT; the whole file, not the range, so that training and validation agree, and of all files
// that the program's sets read so, or an id would be another letter in each. A run that begins with a
// file gives them the ids that they have there. vocab=bytes: a byte is its own id.
#include "runtime/data_reader.h"

#include <stdlib.h>
#include <string.h>

enum { CHARS, BYTES };
static const char *const vocabs[] = {"chars", "bytes", NULL};

static void bytes_used(const mlrt_file *f, bool used[256]) {
  enum { PIECE = 1 << 20 };
  int64_t done = 0;
  for (int64_t from = 0; from < f->len; from += PIECE) {
    int64_t end = f->len - from < PIECE ? f->len : from + PIECE;
    for (int64_t i = from; i < end; i++)
      used[f->data[i]] = true;
    mlrt_file_passed(f, &done, end, false);
  }
}

// Whether the characters of another set count, too.
static bool counts(const mlrt_reading *r, const mlrt_data *other, bool *does) {
  mlrt_reading of_other = *r;
  int vocab = CHARS;
  of_other.spec = other;
  *does = !strcmp(other->format, "text");
  if (!*does)
    return true;
  bool fine = mlrt_setting_choice(&of_other, "vocab", vocabs, &vocab);
  *does = vocab == CHARS;
  return fine;
}

static bool is_own(const mlrt_reading *r, const char *name) {
  for (int i = 0; i < r->names.num; i++)
    if (!strcmp(r->names.at[i], name))
      return true;
  return false;
}

static bool chars_of_files(const mlrt_reading *r, const mlrt_names *names, bool used[256],
                           int *files) {
  for (int i = 0; i < names->num; i++) {
    mlrt_file f = {0};
    if (is_own(r, names->at[i]))
      continue;
    if (!mlrt_file_open(&f, r->program, r->data_dir, names->at[i], NULL, r->error))
      return false;
    bytes_used(&f, used);
    mlrt_file_close(&f);
    ++*files;
  }
  return true;
}

// `files`: how many others there are.
static bool chars_of_others(const mlrt_reading *r, bool used[256], int *files) {
  for (int i = 0; i < r->program->num_data; i++) {
    const mlrt_data *other = &r->program->data[i];
    mlrt_names names;
    bool does;
    if (!counts(r, other, &does))
      return false;
    if (!does)
      continue;
    bool ok = mlrt_names_find(&names, r->program, r->data_dir, other, r->error) &&
              chars_of_files(r, &names, used, files);
    mlrt_names_free(&names);
    if (!ok)
      return mlrt_error_prefix(r->error, "the vocabulary is also that of data `%s`", other->name);
  }
  return true;
}

// Those that the run begins with keep their ids, and others follow.
static void give_ids(mlrt_dataset *d, const bool used[256]) {
  mlrt_characters *c = &d->characters;
  for (int byte = 0; byte < 256; byte++)
    d->table[byte] = -1;
  for (int id = 0; id < c->num; id++)
    d->table[c->byte[id]] = (int16_t)id;
  for (int byte = 0; byte < 256; byte++)
    if (used[byte] && d->table[byte] < 0) {
      d->table[byte] = (int16_t)c->num;
      c->byte[c->num++] = (uint8_t)byte;
    }
}

static bool has_only(mlrt_reading *r, const mlrt_file *f, const bool used[256],
                     const mlrt_known_characters *known) {
  bool has[256] = {false};
  int others = 0, other = 0;
  for (int id = 0; id < known->characters.num; id++)
    has[known->characters.byte[id]] = true;
  for (int byte = 255; byte >= 0; byte--)
    if (used[byte] && !has[byte]) {
      others++;
      other = byte;
    }
  char shown[] = {' ', '(', '\'', (char)other, '\'', ')', '\0'};
  return !others ||
         mlrt_error_set(r->error,
                        "%s has %d character%s that '%s' was not made with: byte %d%s%s\nhelp: "
                        "ids stay what the parameters have learned; train --weights=FILE begins a "
                        "run in which other characters may follow",
                        f->name, others, others == 1 ? "" : "s", known->from, other,
                        other > ' ' && other < 127 ? shown : "", others > 1 ? " and others" : "");
}

static bool make_vocab(mlrt_reading *r, int *others) {
  bool used[256] = {false};
  const mlrt_known_characters *known = r->known;
  bool begins = known && known->characters.num, closed = begins && !known->more;
  for (int i = 0; i < r->set->num_files; i++) {
    bytes_used(&r->set->files[i], used);
    if (closed && !has_only(r, &r->set->files[i], used, known))
      return false;
  }
  if (!closed && !chars_of_others(r, used, others))
    return false;
  if (begins)
    r->set->characters = known->characters;
  give_ids(r->set, used);
  return true;
}

// Better said once, at start, than at the first sample that holds a rare character.
static bool vocab_fits(mlrt_reading *r, int other_files) {
  const char *of_others = other_files             ? ", with the texts of other data sets,"
                          : r->set->num_files > 1 ? ", with the texts beside it,"
                                                  : "";
  for (int i = 0; i < r->program->num_inputs; i++) {
    const mlrt_input *in = &r->program->inputs[i];
    if (in->limit > 0 && r->set->characters.num > in->limit)
      return mlrt_error_set(r->error,
                            "%s%s has %d different characters, but input `%s` takes %lld\nhelp: "
                            "make the vocabulary of the model %d",
                            r->set->files[0].name, of_others, r->set->characters.num, in->name,
                            (long long)in->limit, r->set->characters.num);
  }
  return true;
}

static bool open_all(mlrt_reading *r, mlrt_id_row *rows) {
  for (int i = 0; i < r->set->num_files; i++) {
    if (!mlrt_reading_open_text(r, i))
      return false;
    rows[i].count = r->set->files[i].len;
  }
  return true;
}

bool mlrt_read_text(mlrt_reading *r) {
  static const char *const keys[] = {"vocab", "window", "stride", "lanes", NULL};
  int vocab = CHARS, others = 0;
  if (!mlrt_settings_check(r, keys) || !mlrt_setting_choice(r, "vocab", vocabs, &vocab))
    return false;
  mlrt_id_row *rows = calloc((size_t)r->set->num_files, sizeof *rows);
  bool ok = rows || mlrt_error_memory(r->error, "no memory");
  ok = ok && open_all(r, rows) &&
       (vocab == BYTES || (make_vocab(r, &others) && vocab_fits(r, others)));
  mlrt_ids ids = {
      .rows = rows, .stored = MLRT_ST_U8, .table = vocab == CHARS ? r->set->table : NULL};
  ok = ok && mlrt_ids_to_fields(r, &ids);
  free(rows);
  return ok;
}
