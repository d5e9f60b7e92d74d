// read_text.c: a text as a row of byte ids, cut into windows.
//
// vocab=chars (default): the distinct bytes of the whole file, sorted, are ids 0, 1, ... as in
// nanoGPT; the whole file, not the range, so that training and validation agree, and of all files
// that the program's sets read so, or an id would be another letter in each. vocab=bytes: a byte is
// its own id.
#include "runtime/data_reader.h"

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

// Another set's text whose characters count, too.
static bool has_other_chars(const mlrt_reading *r, const mlrt_data *other, bool *has) {
  mlrt_reading of_other = *r;
  int vocab = CHARS;
  of_other.spec = other;
  *has = !strcmp(other->format, "text") && other->num_files == 1 &&
         strcmp(other->files[0], r->spec->files[0]) != 0;
  if (!*has)
    return true;
  bool fine = mlrt_setting_choice(&of_other, "vocab", vocabs, &vocab);
  *has = vocab == CHARS;
  return fine;
}

// `files`: how many others there are.
static bool chars_of_others(const mlrt_reading *r, bool used[256], int *files) {
  for (int i = 0; i < r->program->num_data; i++) {
    const mlrt_data *other = &r->program->data[i];
    mlrt_file f = {0};
    bool has;
    if (!has_other_chars(r, other, &has))
      return false;
    if (!has)
      continue;
    if (!mlrt_file_open(&f, r->program, r->data_dir, other->files[0], NULL, r->error))
      return mlrt_error_prefix(r->error, "the vocabulary is also that of data `%s`", other->name);
    bytes_used(&f, used);
    mlrt_file_close(&f);
    ++*files;
  }
  return true;
}

static void make_vocab(mlrt_dataset *d, const bool used[256]) {
  for (int byte = 0; byte < 256; byte++)
    d->table[byte] = used[byte] ? (int16_t)d->vocab++ : -1;
}

// Better said once, at start, than at the first sample that holds a rare character.
static bool vocab_fits(mlrt_reading *r, int other_files) {
  const char *of_others = other_files ? ", with the texts of other data sets," : "";
  for (int i = 0; i < r->program->num_inputs; i++) {
    const mlrt_input *in = &r->program->inputs[i];
    if (in->limit > 0 && r->set->vocab > in->limit)
      return mlrt_error_set(r->error,
                            "%s%s has %d different characters, but input `%s` takes %lld\nhelp: "
                            "make the vocabulary of the model %d",
                            r->set->files[0].name, of_others, r->set->vocab, in->name,
                            (long long)in->limit, r->set->vocab);
  }
  return true;
}

bool mlrt_read_text(mlrt_reading *r) {
  static const char *const keys[] = {"vocab", "window", "stride", "lanes", NULL};
  int vocab = CHARS, others = 0;
  if (!mlrt_settings_check(r, keys) || !mlrt_setting_choice(r, "vocab", vocabs, &vocab) ||
      !mlrt_reading_open(r, 0, NULL))
    return false;
  mlrt_dataset *d = r->set;
  bool used[256] = {false};
  for (int byte = 0; vocab == BYTES && byte < 256; byte++)
    used[byte] = true;
  if (vocab == CHARS)
    bytes_used(&d->files[0], used);
  if (vocab == CHARS && !chars_of_others(r, used, &others))
    return false;
  make_vocab(d, used);
  mlrt_ids ids = {
      .count = d->files[0].len, .stored = MLRT_ST_U8, .table = vocab == CHARS ? d->table : NULL};
  return (vocab == BYTES || vocab_fits(r, others)) && mlrt_ids_to_fields(r, &ids);
}
