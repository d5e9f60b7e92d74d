// cuda_resources.c: see cuda_resources.h. Every offset of the file is checked before it is
// followed.
//
// An attribute of .nv.info is one word (format, number, 16 bits), and for format 4 as many bytes
// more as the 16 bits say: here a symbol's index and a value.
#include "codegen/cuda_resources.h"

#include <elf.h>
#include <string.h>

enum {
  MACHINE_CUDA = 190,
  ENTRY = 0x10,      // in a symbol's st_other: a kernel
  LONG_FORMAT = 4,   // of an attribute
  FRAME_SIZE = 0x11, // numbers of attributes
  MIN_STACK_SIZE = 0x12,
  REGISTER_COUNT = 0x2f,
  RESERVED_SHARED = 1024 // the system's part of .nv.shared.NAME, from sm_90 on
};

typedef struct cubin {
  ir_arena *a;
  const char *data;
  size_t len;
  Elf64_Ehdr header;
  const Elf64_Shdr *sections;
  int num_sections;
  int names, symbols; // sections
} cubin;

// --- reading -------------------------------------------------------------------------------------
static bool fits(const cubin *c, uint64_t offset, uint64_t bytes) {
  return offset <= c->len && bytes <= c->len - offset;
}

// Text in a string section; "" when it is outside.
static const char *string_at(const cubin *c, int section, uint64_t offset) {
  const Elf64_Shdr *s = &c->sections[section];
  if (offset >= s->sh_size || !memchr(c->data + s->sh_offset + offset, 0, s->sh_size - offset))
    return "";
  return c->data + s->sh_offset + offset;
}

static const char *name_of(const cubin *c, int section) {
  return string_at(c, c->names, c->sections[section].sh_name);
}

static bool read_symbol(const cubin *c, uint64_t i, Elf64_Sym *out) {
  const Elf64_Shdr *s = &c->sections[c->symbols];
  if (i >= s->sh_size / sizeof *out)
    return false;
  memcpy(out, c->data + s->sh_offset + i * sizeof *out, sizeof *out);
  return true;
}

static const char *symbol_name(const cubin *c, const Elf64_Sym *s) {
  return string_at(c, (int)c->sections[c->symbols].sh_link, s->st_name);
}

// Sections are copied, since a file in memory need not be aligned.
static bool read_sections(cubin *c) {
  size_t bytes = c->header.e_shnum * sizeof(Elf64_Shdr);
  if (c->header.e_shentsize != sizeof(Elf64_Shdr) || !fits(c, c->header.e_shoff, bytes) ||
      c->header.e_shstrndx >= c->header.e_shnum)
    return false;
  Elf64_Shdr *copy = IR_NEW_ARRAY(c->a, Elf64_Shdr, c->header.e_shnum);
  memcpy(copy, c->data + c->header.e_shoff, bytes);
  c->sections = copy;
  c->num_sections = c->header.e_shnum;
  c->names = c->header.e_shstrndx;
  c->symbols = -1;
  for (int i = 0; i < c->num_sections; i++) {
    if (copy[i].sh_type != SHT_NOBITS && !fits(c, copy[i].sh_offset, copy[i].sh_size))
      return false;
    if (copy[i].sh_type == SHT_SYMTAB)
      c->symbols = i;
  }
  // Strings of a section without bytes would be read elsewhere.
  return c->symbols >= 0 && copy[c->symbols].sh_link < c->header.e_shnum &&
         copy[copy[c->symbols].sh_link].sh_type == SHT_STRTAB &&
         copy[c->names].sh_type == SHT_STRTAB;
}

static bool open_cubin(cubin *c) {
  if (c->len < sizeof c->header)
    return false;
  memcpy(&c->header, c->data, sizeof c->header);
  return memcmp(c->header.e_ident, ELFMAG, SELFMAG) == 0 &&
         c->header.e_ident[EI_CLASS] == ELFCLASS64 && c->header.e_machine == MACHINE_CUDA &&
         read_sections(c);
}

// --- kernels -------------------------------------------------------------------------------------
static cg_resources *find(cg_resource_list *all, const char *kernel) {
  for (size_t i = 0; i < all->num; i++)
    if (!strcmp(all->at[i].kernel, kernel))
      return &all->at[i];
  return NULL;
}

static void add_kernels(const cubin *c, cg_resource_list *all) {
  Elf64_Sym s;
  for (uint64_t i = 0; read_symbol(c, i, &s); i++) {
    cg_resources r = {.kernel = ir_strdup(c->a, symbol_name(c, &s)), .stack = -1};
    if ((s.st_other & ENTRY) && *r.kernel)
      IR_PUSH(c->a, *all, r);
  }
}

static void take_attribute(const cubin *c, int number, const char *value, cg_resource_list *all) {
  uint32_t words[2];
  Elf64_Sym s;
  memcpy(words, value, sizeof words);
  cg_resources *r = read_symbol(c, words[0], &s) ? find(all, symbol_name(c, &s)) : NULL;
  if (r && number == REGISTER_COUNT)
    r->registers = (int)words[1];
  if (r && number == FRAME_SIZE)
    r->frame = words[1];
  if (r && number == MIN_STACK_SIZE)
    r->stack = (int32_t)words[1];
}

static void take_info(const cubin *c, const Elf64_Shdr *s, cg_resource_list *all) {
  const unsigned char *p = (const unsigned char *)c->data + s->sh_offset, *end = p + s->sh_size;
  while (end - p >= 4) {
    int format = p[0], number = p[1], bytes = p[2] | p[3] << 8;
    p += 4;
    if (format != LONG_FORMAT)
      continue;
    if (bytes > end - p)
      return;
    if (bytes == 8)
      take_attribute(c, number, (const char *)p, all);
    p += bytes;
  }
}

// What follows `prefix` and a number: "k" of ".nv.constant0.k"; NULL when it begins otherwise.
static const char *after(const char *name, const char *prefix) {
  size_t n = strlen(prefix);
  if (strncmp(name, prefix, n) != 0)
    return NULL;
  name += n + strspn(name + n, "0123456789");
  return *name == '.' ? name + 1 : NULL;
}

static void take_sizes(const cubin *c, cg_resource_list *all) {
  int64_t reserved = 0;
  for (int i = 0; i < c->num_sections; i++)
    if (!strcmp(name_of(c, i), ".nv.shared.reserved.0"))
      reserved = RESERVED_SHARED;
  for (int i = 0; i < c->num_sections; i++) {
    const char *shared = after(name_of(c, i), ".nv.shared");
    const char *constant = after(name_of(c, i), ".nv.constant");
    int64_t bytes = (int64_t)c->sections[i].sh_size;
    cg_resources *r = shared ? find(all, shared) : constant ? find(all, constant) : NULL;
    if (r && shared)
      r->shared += bytes > reserved ? bytes - reserved : 0;
    else if (r)
      r->constant += bytes;
  }
}

bool cg_cubin_resources(ir_arena *a, const char *data, size_t len, cg_resource_list *out,
                        const char **why) {
  cubin c = {.a = a, .data = data, .len = len};
  if (!open_cubin(&c)) {
    *why = "this is no cubin, or a damaged one";
    return false;
  }
  *out = (cg_resource_list){0};
  add_kernels(&c, out);
  for (int i = 0; i < c.num_sections; i++)
    if (!strcmp(name_of(&c, i), ".nv.info"))
      take_info(&c, &c.sections[i], out);
  take_sizes(&c, out);
  return true;
}
