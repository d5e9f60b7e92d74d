// objects.c: see objects.h.
//
// The key of an object is all that its bytes depend on: the compiler's file and what it says of itself, for
// it may be a script that calls another one; the configuration files that it has read (clang 16 and newer);
// its arguments; the source without comments (where a graph lies, and which kernels share a function, is
// nothing to the compiler); the header of the runtime; the C library; and for -march=native what
// /proc/cpuinfo says that the processor can do: a home folder may be shared by many machines. Where one of
// these cannot be found out, everything is compiled.
#include "codegen/objects.h"

#include <gnu/libc-version.h>
#include <string.h>

typedef struct object {
  const char *path;
  ir_buf key;
  bool compiled; // not found
} object;

struct cg_objects {
  const cg_tools *x;
  const char *common; // of all keys; NULL: nothing is looked for, and nothing kept
  IR_VEC(object) all;
};

// --- keys ----------------------------------------------------------------------------------------
// The first processor: all others are taken to be its like.
static const char *processor(ir_arena *a) {
  size_t len = 0;
  const char *text = ir_read_file(a, "/proc/cpuinfo", &len);
  const char *end = text ? strstr(text, "\n\n") : NULL;
  ir_buf b = ir_buf_new(a);
  for (const char *line = text; end && line < end; line = strchr(line, '\n') + 1)
    if (!strncmp(line, "vendor_id", 9) || !strncmp(line, "cpu family", 10) ||
        !strncmp(line, "model", 5) || !strncmp(line, "stepping", 8) || !strncmp(line, "flags", 5) ||
        !strncmp(line, "CPU ", 4) || !strncmp(line, "Features", 8))
      ir_buf_write(&b, line, (size_t)(strchr(line, '\n') + 1 - line));
  return b.len ? ir_buf_str(&b) : NULL;
}

// What the files say that a compiler says it has read. Those may name others: NULL then, or when one cannot be read.
static const char *configuration(ir_arena *a, const char *version) {
  static const char said[] = "Configuration file: ";
  ir_buf b = ir_buf_new(a);
  for (const char *at = version; (at = strstr(at, said));) {
    at += sizeof said - 1;
    size_t len = 0;
    const char *path = ir_format(a, "%.*s", (int)strcspn(at, "\r\n"), at);
    const char *text = ir_read_file(a, path, &len);
    if (!text || memchr(text, '@', len) || strstr(text, "-config") || strstr(text, "-include"))
      return NULL;
    ir_buf_write(&b, text, len);
  }
  return ir_buf_str(&b);
}

static const char *common_key(const cg_tools *x) {
  const char *path = cg_find_program(x->a, x->cc);
  const char *stamp = path ? cg_file_stamp(x->a, path) : NULL, *version = cg_compiler_version(x);
  bool native = x->t->march && !strcmp(x->t->march, "native");
  const char *machine = native ? processor(x->a) : "another machine";
  const char *config = version ? configuration(x->a, version) : NULL;
  size_t len = 0;
  const char *header = ir_read_file(x->a, ir_format(x->a, "%s/mlrt.h", x->lib), &len);
  if (!stamp || !config || !machine || !header)
    return NULL;
  return ir_format(x->a, "object by %s, %s\n%s\n%s\nlibc %s\nmlrt.h %016llx\n%s\n", path, stamp,
                   version, config, gnu_get_libc_version(),
                   (unsigned long long)ir_hash(header, len), machine);
}

// Paths of the folder are those of one run.
static void put_arguments(const cg_tools *x, const cg_command *c, ir_buf *key) {
  size_t len = strlen(x->dir);
  for (int i = 1; i < c->num; i++)
    if (strcmp(c->argv[i], x->lib) != 0)
      ir_buf_printf(key, "%s ", strncmp(c->argv[i], x->dir, len) ? c->argv[i] : c->argv[i] + len);
  ir_buf_puts(key, "\n");
}

// --- objects -------------------------------------------------------------------------------------
static bool take_from_cache(const cg_objects *o, const object *x) {
  size_t len = 0;
  const char *data = o->common ? cg_cache_get(&o->x->cache, &x->key, &len) : NULL;
  if (!data || !ir_write_file(x->path, data, len))
    return false;
  if (o->x->b->verbose)
    fprintf(stderr, "+ from the cache: %s\n", x->path);
  return true;
}

static void add_object(cg_objects *o, const cg_source *s, cg_jobs *jobs) {
  const cg_tools *x = o->x;
  object n = {.path = cg_with_suffix(x, s->name, ".o"), .key = ir_buf_new(x->a)};
  cg_command c = cg_compile_command(x, s, n.path);
  if (o->common) {
    ir_buf_puts(&n.key, o->common);
    put_arguments(x, &c, &n.key);
    cg_put_source(s, &n.key);
  }
  n.compiled = !take_from_cache(o, &n);
  if (n.compiled)
    cg_add_compile(x, jobs, s);
  IR_PUSH(x->a, o->all, n);
}

cg_objects *cg_objects_new(const cg_tools *x, const cg_sources *s, cg_jobs *jobs) {
  cg_objects *o = IR_NEW(x->a, cg_objects);
  *o = (cg_objects){.x = x, .common = x->cache.dir ? common_key(x) : NULL};
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].kind == CG_SOURCE_C)
      add_object(o, &s->at[i], jobs);
  return o;
}

void cg_objects_finish(const cg_objects *o) {
  bool added = false;
  for (size_t i = 0; o->common && i < o->all.num; i++) {
    const object *n = &o->all.at[i];
    size_t len = 0;
    const char *data = n->compiled ? ir_read_file(o->x->a, n->path, &len) : NULL;
    if (data)
      cg_cache_put(&o->x->cache, &n->key, data, len);
    added |= data != NULL;
  }
  if (added)
    cg_cache_trim(&o->x->cache, CG_CACHE_BYTES);
}
