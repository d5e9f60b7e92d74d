// read_text.c: a text as a row of byte ids, cut into windows.
//
// vocab=chars (default): the distinct bytes of the whole file, sorted, are ids 0, 1, ... as in
// nanoGPT; the whole file, not the range, so that training and validation agree, and of all files
// that the program's sets read so, or an id would be another letter in each. A run that begins with a
// file gives them the ids that they have there. vocab=bytes: a byte is its own id.
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

static bool has_only(mlrt_reading *r, const bool used[256], const mlrt_known_characters *known) {
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
                        r->set->files[0].name, others, others == 1 ? "" : "s", known->from, other,
                        other > ' ' && other < 127 ? shown : "", others > 1 ? " and others" : "");
}

static bool make_vocab(mlrt_reading *r, int *others) {
  bool used[256] = {false};
  const mlrt_known_characters *known = r->known;
  bool begins = known && known->characters.num, closed = begins && !known->more;
  bytes_used(&r->set->files[0], used);
  if (closed ? !has_only(r, used, known) : !chars_of_others(r, used, others))
    return false;
  if (begins)
    r->set->characters = known->characters;
  give_ids(r->set, used);
  return true;
}

// Better said once, at start, than at the first sample that holds a rare character.
static bool vocab_fits(mlrt_reading *r, int other_files) {
  const char *of_others = other_files ? ", with the texts of other data sets," : "";
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

bool mlrt_read_text(mlrt_reading *r) {
  static const char *const keys[] = {"vocab", "window", "stride", "lanes", NULL};
  int vocab = CHARS, others = 0;
  if (!mlrt_settings_check(r, keys) || !mlrt_setting_choice(r, "vocab", vocabs, &vocab) ||
      !mlrt_reading_open_text(r))
    return false;
  mlrt_dataset *d = r->set;
  if (vocab == CHARS && !(make_vocab(r, &others) && vocab_fits(r, others)))
    return false;
  mlrt_ids ids = {
      .count = d->files[0].len, .stored = MLRT_ST_U8, .table = vocab == CHARS ? d->table : NULL};
  return mlrt_ids_to_fields(r, &ids);
}
