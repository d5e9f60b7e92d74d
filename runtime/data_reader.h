// data_reader.h: inside the data side. What readers get (bytes of files, settings, inputs) and
// what they make (one field per input).
//
// Every format comes down to the same thing: sample s of input i is `elements` numbers of one
// stored type at base + s * stride. Overlapping windows of a text are a stride of one byte,
// targets a base that is one byte further. So a reader only checks a file and says where its
// numbers lie; copying and converting them is the same for all (data_convert.c).
#ifndef RUNTIME_DATA_READER_H
#define RUNTIME_DATA_READER_H

#include "runtime/data.h"
#include "runtime/dtype.h"

// --- bytes of a file (data_file.c, data_gunzip.c) ------------------------------------------
typedef enum mlrt_memory {
  MLRT_MEM_NONE,
  MLRT_MEM_BINARY,
  MLRT_MEM_MAPPED,
  MLRT_MEM_PRIVATE
} mlrt_memory;

typedef struct mlrt_file {
  char *name;          // where it was found; for messages
  const uint8_t *data; // unpacked
  int64_t len;
  mlrt_memory memory;
  uint8_t *map;      // MAPPED, PRIVATE: the pages that hold data
  int64_t map_bytes; // a multiple of the page size
} mlrt_file;

// How many bytes a file that begins with head[0..len) can have at most (+1: to notice more), so
// that a small .gz cannot unpack to more than its own header asks for. NULL: no such bound.
typedef int64_t (*mlrt_need_fn)(const uint8_t *head, int64_t len);

// Where a name that is no absolute path is looked for, in this order; of an absolute one, nowhere else. len 0: as it is.
typedef struct mlrt_folder {
  const char *at;
  int len;
} mlrt_folder;
enum { MLRT_DATA_FOLDERS = 3 };
int mlrt_data_folders(const mlrt_program *p, const char *data_dir, const char *name,
                      mlrt_folder out[MLRT_DATA_FOLDERS]);

// Files of a data entry: as they are written, and what fits a pattern (data_names.c).
typedef struct mlrt_names {
  int num;
  char **at;
} mlrt_names;
// False: a pattern that nothing fits, and `n` is empty. mlrt_names_free is the caller's.
bool mlrt_names_find(mlrt_names *n, const mlrt_program *p, const char *data_dir,
                     const mlrt_data *spec, mlrt_error *e);
void mlrt_names_free(mlrt_names *n);
// Whether a file of the entry is the one at `path`; none that the program carries is.
bool mlrt_data_is_at(const mlrt_program *p, const char *data_dir, const mlrt_data *spec,
                     const char *path);

// Finds, maps and unpacks. `f` is empty after an error.
bool mlrt_file_open(mlrt_file *f, const mlrt_program *p, const char *data_dir, const char *name,
                    mlrt_need_fn need, mlrt_error *e);
// Whether the program carries a file of this name, or one is found.
bool mlrt_file_is_there(const mlrt_program *p, const char *data_dir, const char *name);
// Whether `path` is where the data file `name` of the program is found; never one that the program carries.
bool mlrt_file_is_at(const mlrt_program *p, const char *data_dir, const char *name,
                     const char *path);
void mlrt_file_close(mlrt_file *f);   // `f` is empty then; it may have been before
void mlrt_file_release(mlrt_file *f); // the bytes only: the name stays, for messages
// A scan has come to byte `at`: pages behind it need not stay in memory. *done (0 at first) is how
// far they were let go. `for_good`: private pages are dropped, too, and must not be read again.
void mlrt_file_passed(const mlrt_file *f, int64_t *done, int64_t at, bool for_good);
// Gives back the pages of a private file outside [offset, offset + len), which must lie in it.
void mlrt_file_keep(mlrt_file *f, int64_t offset, int64_t len);
// Zeroed private pages; NULL when there is no memory. mlrt_pages_size: what they take.
uint8_t *mlrt_pages_new(int64_t bytes);
int64_t mlrt_pages_size(int64_t bytes);
// Whether bytes begin as gzip files do.
bool mlrt_is_gz(const uint8_t *data, int64_t len);
// Replaces the packed bytes of `f` (in the binary or mapped) by unpacked private ones.
bool mlrt_gunzip(mlrt_file *f, mlrt_need_fn need, mlrt_error *e);

// Decimal text to the nearest double, infinite beyond the largest one; false when it is no number (data_number.c).
bool mlrt_parse_number(const uint8_t *at, int64_t len, double *out);

// --- stored numbers (data_convert.c) -------------------------------------------------------------
typedef enum mlrt_stored {
  MLRT_ST_U8,
  MLRT_ST_BOOL, // a byte, 0 or 1
  MLRT_ST_I8,
  MLRT_ST_U16,
  MLRT_ST_I16,
  MLRT_ST_U32,
  MLRT_ST_I32,
  MLRT_ST_U64,
  MLRT_ST_I64,
  MLRT_ST_F16,
  MLRT_ST_BF16,
  MLRT_ST_F32,
  MLRT_ST_F64
} mlrt_stored;
int mlrt_stored_bytes(mlrt_stored t);             // of one number
mlrt_stored mlrt_stored_from_dtype(mlrt_dtype t); // as inputs of this dtype are

// Samples that lie in one of several files.
typedef struct mlrt_part {
  int64_t first;       // the sample that it begins with; ascending
  const uint8_t *base; // where that one begins
  const char *file;
} mlrt_part;

typedef struct mlrt_field {
  const uint8_t *base; // sample 0
  int64_t stride;      // bytes from a sample to the next; with lanes, of one lane
  int64_t lanes;       // sample i is sample i / lanes of lane i % lanes; 0: there is one
  int64_t lane_bytes;  // from a lane to the next
  int64_t elements;    // numbers per sample
  mlrt_stored stored;
  bool swap; // other byte order than this machine's
  // U8 only: stored byte -> value, -1: not in the vocabulary; NULL: the byte itself.
  const int16_t *table;
  const mlrt_input *input;
  const char *file; // for messages
  // Of several files: whose samples are a stride apart. `base` and `file` are those of the first.
  const mlrt_part *parts;
  int num_parts; // 0: there is one file
} mlrt_field;

// The last one that begins at `index` or before.
static inline const mlrt_part *mlrt_field_part(const mlrt_field *f, int64_t index) {
  int low = 0, high = f->num_parts;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (f->parts[middle].first <= index)
      low = middle;
    else
      high = middle;
  }
  return &f->parts[low];
}

// Where sample `index` begins.
static inline const uint8_t *mlrt_field_at(const mlrt_field *f, int64_t index) {
  if (f->num_parts) {
    const mlrt_part *part = mlrt_field_part(f, index);
    return part->base + (index - part->first) * f->stride;
  }
  if (f->lanes == 0)
    return f->base + index * f->stride;
  return f->base + index % f->lanes * f->lane_bytes + index / f->lanes * f->stride;
}

// Converts sample `index` to the input's dtype at `out`.
bool mlrt_field_copy(const mlrt_field *f, int64_t index, char *out, mlrt_error *e);
// One number, element `element` of a sample, to the input's dtype; false (no message) when it does not fit or breaks the
// limit.
bool mlrt_store_number(const mlrt_input *in, int64_t element, double v, char *out);
// "u8 holds 0..255", "ids of `tokens` are below 65": why a number was refused.
const char *mlrt_limits_text(const mlrt_input *in, int64_t element, char *buf, size_t size);

// --- datasets --------------------------------------------------------------------------------
struct mlrt_dataset {
  const char *name;
  int64_t size; // samples
  int num_fields;
  mlrt_field *fields; // one per input
  int num_files;
  mlrt_file *files;     // what the fields point into, unless they point into `parsed`
  mlrt_part *parts;     // of all fields, where there are several files
  uint8_t *parsed;      // csv: converted numbers
  int64_t parsed_bytes; // a multiple of the page size
  // text with vocab=chars:
  mlrt_characters characters;
  int16_t table[256]; // byte -> id; -1: none
};

// What a reader works on.
typedef struct mlrt_reading {
  const mlrt_program *program;
  const mlrt_data *spec;
  mlrt_use use;
  const char *data_dir;
  const mlrt_flag_values *flags;
  const mlrt_known_characters *known;
  mlrt_names names;  // of the files
  mlrt_dataset *set; // fields[i].input and files' names are filled in
  mlrt_error *error;
} mlrt_reading;

// A reader for each format: opens the entry's files and fills in set->size and where the fields' numbers lie. False: an
// error, which names the file; what has been opened is the caller's to close.
bool mlrt_read_idx(mlrt_reading *r);
bool mlrt_read_npy(mlrt_reading *r);
bool mlrt_read_csv(mlrt_reading *r);
bool mlrt_read_text(mlrt_reading *r);
bool mlrt_read_tokens(mlrt_reading *r);

// Opens file i of the entry into set->files[i].
bool mlrt_reading_open(mlrt_reading *r, int i, mlrt_need_fn need);
// The same of one of which any bytes could be meant: not what some other program has packed.
bool mlrt_reading_open_text(mlrt_reading *r, int i);
int64_t mlrt_input_elements(const mlrt_input *in); // per sample: product of dims[1..]

// An array that a file holds (idx, npy): checked against input i and made its field.
typedef struct mlrt_array {
  mlrt_stored stored;
  bool swap;
  int rank;
  int64_t dims[MLRT_MAX_RANK]; // dims[0]: samples
  int64_t offset;              // of the first number in the file
} mlrt_array;
// Bytes of a file with `a` up to the end of its numbers; INT64_MAX when that overflows.
int64_t mlrt_array_end(const mlrt_array *a);
// What is wrong with the header of a file that begins with at[0..len); NULL: nothing, and `a`, all
// zeros before, is filled in.
typedef const char *(*mlrt_header_fn)(const uint8_t *at, int64_t len, mlrt_array *a);
// The arrays of an entry, a file for each input; they have equally many samples.
bool mlrt_read_arrays(mlrt_reading *r, mlrt_need_fn need, mlrt_header_fn parse);

// Windows over long rows of ids, one in each file (text, tokens): inputs 0 and, shifted by one, 1.
typedef struct mlrt_id_row {
  int64_t offset, count; // bytes, ids
} mlrt_id_row;
typedef struct mlrt_ids {
  const mlrt_id_row *rows; // of each file of the set
  mlrt_stored stored;
  bool swap;
  const int16_t *table;
} mlrt_ids;
// Sets the size, and the fields of both inputs. False: a wrong setting, or too few ids.
bool mlrt_ids_to_fields(mlrt_reading *r, const mlrt_ids *ids);

// --- settings (data_settings.c) ------------------------------------------------------------------
// Every key of the entry must be in `keys` (NULL-terminated) or one that all formats have.
bool mlrt_settings_check(const mlrt_reading *r, const char *const *keys);
const mlrt_setting *mlrt_setting_find(const mlrt_reading *r, const char *key); // NULL: absent
// Absent: `*out` keeps its value. False: wrong kind of value, or a number outside [lo, hi]. Of a choice *out is the
// index in `names` (NULL-terminated).
bool mlrt_setting_int(const mlrt_reading *r, const char *key, int64_t lo, int64_t hi, int64_t *out);
bool mlrt_setting_choice(const mlrt_reading *r, const char *key, const char *const *names,
                         int *out);
// 1, "true", 0, "false" to 1 or 0.
bool mlrt_setting_bool(const mlrt_reading *r, const char *key, int *out);
// range_lo .. range_hi of n things: [int(n * lo), int(n * hi)), as nanoGPT splits.
bool mlrt_setting_range(const mlrt_reading *r, int64_t n, int64_t *lo, int64_t *hi);

#endif
