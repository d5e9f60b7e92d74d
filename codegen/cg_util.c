// cg_util.c: names of values and arguments in generated text, and the C scopes they live in.
//
// A scope is a map with three kinds of key: "=x" (the identifier x is taken), "+x" (so many names
// were made of the hint x) and "#12" (the C expression that holds node 12). Names come from the
// last word of a node's name, without numbers that only make it unique, so that equal kernels of
// different layers read the same:
//   layer.3.attn.q -> q      d.layer.3.attn.q -> d_q      add.17 -> add
#include "codegen/codegen.h"

#include <ctype.h>
#include <string.h>

// Words that a C or CUDA file with our prelude cannot use for a variable, each between spaces.
static const char reserved[] =
    " auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm linux typeof unix NULL "
    "alignas alignof and and_eq bitand bitor bool catch char16_t char32_t class compl "
    "const_cast constexpr decltype delete dynamic_cast explicit export false friend mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast static_assert static_cast template this thread_local throw true try "
    "typeid typename using virtual wchar_t xor xor_eq "
    "vf vi vu vl vlu vd VL K args begin end j u unit row chunk task block thread lane threadIdx "
    "blockIdx blockDim gridDim warpSize ";

static bool is_word(const char *s) {
  size_t length = strlen(s);
  for (const char *at = reserved; (at = strstr(at, s)); at += length)
    if (at[-1] == ' ' && at[length] == ' ')
      return true;
  return false;
}

// What headers may define: INT32_MAX, __LINE__.
static bool may_be_macro(const char *s) {
  size_t length = strlen(s);
  const char *tail = s + (length > 4 ? length - 4 : 0);
  bool limit = strcmp(tail, "_MAX") == 0 || strcmp(tail, "_MIN") == 0;
  return limit || (s[0] == '_' && (s[1] == '_' || isupper((unsigned char)s[1])));
}

// p0_x: as cg_arg_name writes them.
static bool is_arg_name(const char *s) {
  size_t digits = s[0] == 'p' ? strspn(s + 1, "0123456789") : 0;
  return digits > 0 && s[1 + digits] == '_';
}

static bool is_reserved(const char *s) {
  return strncmp(s, "k_", 2) == 0 || strncmp(s, "K_", 2) == 0 || is_word(s) || is_arg_name(s) ||
         may_be_macro(s);
}

static bool all_digits(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isdigit((unsigned char)s[i]))
      return false;
  return true;
}

// The last dotted word of `name` that is not a number; its length in *len.
static const char *last_word(const char *name, size_t *len) {
  size_t end = strlen(name);
  for (;;) {
    size_t start = end;
    while (start > 0 && name[start - 1] != '.')
      start--;
    *len = end - start;
    if (start == 0 || !all_digits(name + start, *len))
      return name + start;
    end = start - 1;
  }
}

static const char *identifier(ir_arena *a, const char *name) {
  size_t len;
  const char *word = last_word(name, &len);
  bool gradient = strncmp(name, "d.", 2) == 0 && word != name;
  char *s = ir_format(a, "%s%.*s", gradient ? "d_" : "", (int)len, word);
  for (char *c = s; *c; c++)
    if (!isalnum((unsigned char)*c))
      *c = '_';
  if (!*s || isdigit((unsigned char)*s))
    return ir_format(a, "v%s", s);
  return is_reserved(s) ? ir_format(a, "%s_", s) : s;
}

static const char *node_key(ir_arena *a, const ir_node *n) {
  return ir_format(a, "#%u", n->id);
}

// "+x" holds how many names of hint x there are: a kernel may have thousands.
const char *cg_scope_name(ir_arena *a, ir_map *names, const char *hint) {
  const char *known = ir_format(a, "+%s", hint);
  size_t i = (size_t)(uintptr_t)ir_map_get(names, known) + 1;
  const char *name = i > 1 ? ir_format(a, "%s_%zu", hint, i) : hint;
  while (ir_map_get(names, ir_format(a, "=%s", name)))
    name = ir_format(a, "%s_%zu", hint, ++i);
  ir_map_put(names, known, (void *)(uintptr_t)i);
  ir_map_put(names, ir_format(a, "=%s", name), (void *)(uintptr_t)name);
  return name;
}

ir_map *cg_scope_copy(ir_arena *a, const ir_map *names) {
  ir_map *m = ir_map_new(a);
  for (size_t i = 0; i < ir_map_count(names); i++)
    ir_map_put(m, ir_map_key(names, i), ir_map_value(names, i));
  return m;
}

void cg_scope_bind(ir_arena *a, ir_map *names, const ir_node *n, const char *expr) {
  ir_map_put(names, node_key(a, n), (void *)(uintptr_t)expr);
}

const char *cg_scope_value(ir_arena *a, const ir_map *names, const ir_node *n) {
  return ir_map_get(names, node_key(a, n));
}

const char *cg_local_name(ir_arena *a, ir_map *names, const ir_node *n) {
  return cg_scope_name(a, names, identifier(a, n->name));
}

// Several READ nodes may stand for one state; they are one argument only when they are one node.
int cg_arg_index(const cg_kernel *k, const ir_node *buffer) {
  for (size_t i = 0; i < k->in.num; i++)
    if (k->in.at[i] == buffer)
      return (int)i;
  for (size_t i = 0; i < k->out.num; i++)
    if (k->out.at[i] == buffer)
      return (int)(k->in.num + i);
  return -1;
}

static const ir_node *argument(const cg_kernel *k, size_t i) {
  return i < k->in.num ? k->in.at[i] : k->out.at[i - k->in.num];
}

bool cg_runs_once(const ir_func *f) {
  return strcmp(f->name, "init") == 0;
}

static bool draws(const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++)
    if (ir_is_random(k->nodes.at[i]))
      return true;
  return false;
}

ir_node_list cg_numbered_constants(const cg_kernel *k) {
  ir_node_list l = {0};
  if (k->k->family != IR_FAMILY_LOOP || !cg_runs_once(k->func) || !draws(k->k))
    return l;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const ir_node *n = k->k->nodes.at[i];
    for (int j = 0; j < n->num_in; j++) {
      ir_node *base = dom_base(n->in[j]);
      if (base->op == IR_CONST && base->type.dtype == IR_F32 && !ir_has_node(&l, base))
        IR_PUSH(k->arena, l, base);
    }
  }
  return l;
}

const char *cg_arg_name(const cg_kernel *k, int arg) {
  const ir_node *n = argument(k, (size_t)arg);
  return ir_format(k->arena, "p%d_%s", arg, identifier(k->arena, n->name));
}

void cg_emit_args(const cg_kernel *k, ir_buf *out, int indent) {
  for (size_t i = 0; i < k->in.num + k->out.num; i++) {
    const char *type = ir_dtypes[argument(k, i)->type.dtype].ctype;
    const char *is_const = i < k->in.num ? "const " : "";
    ir_buf_printf(out, "%*s%s%s *const %s = (%s%s *)args[%zu]%s;\n", indent, "", is_const, type,
                  cg_arg_name(k, (int)i), is_const, type, i, cg_begin_text(k, (int)i));
  }
}

void cg_emit_number(const cg_kernel *k, int i, const char *type, const char *name, ir_buf *out,
                    int indent) {
  size_t at = k->in.num + k->out.num + (k->workspace > 0) + (size_t)i;
  ir_buf_printf(out, "%*sconst %s %s = (%s)(uintptr_t)args[%zu];\n", indent, "", type, name, type,
                at);
}

void cg_emit_indices(ir_buf *out, int indent, const char *flat, int num, const int64_t *size,
                     const char *const *name) {
  int64_t inner = 1;
  for (int i = 0; i < num; i++)
    inner *= size[i];
  for (int i = 0; i < num; i++) {
    inner /= size[i];
    ir_buf_printf(out, "%*sconst int64_t %s = %s", indent, "", name[i], flat);
    if (inner > 1)
      ir_buf_printf(out, " / %lld", (long long)inner);
    if (i > 0)
      ir_buf_printf(out, " %% %lld", (long long)size[i]);
    ir_buf_puts(out, ";\n");
  }
}

void cuda_put_loop(ir_buf *out, int indent, const char *i, int num) {
  ir_buf_printf(out, "%*s#pragma unroll\n%*sfor (int %s = 0; %s < %d; %s++)\n", indent, "", indent,
                "", i, i, num, i);
}

void cuda_put_to_and_fro(ir_buf *out, int indent, int rows, int columns, const char *statement) {
  cuda_put_loop(out, indent, "i", rows);
  cuda_put_loop(out, indent + 2, "j", columns);
  ir_buf_printf(out, "%*s{\n%*sconst int at = i %% 2 ? %d - j : j;\n%*s%s\n%*s}\n", indent + 4, "",
                indent + 6, "", columns - 1, indent + 6, "", statement, indent + 4, "");
}

bool cg_follows(const cg_kernel *k, const ir_node *first, const ir_node *x, int num) {
  return dom_contiguous(x) &&
         cg_arg_index(k, dom_base(x)) == cg_arg_index(k, dom_base(first)) + num;
}

void cg_vline(ir_buf *out, int indent, const char *fmt, va_list ap) {
  ir_buf_printf(out, "%*s", indent, "");
  ir_buf_vprintf(out, fmt, ap);
  ir_buf_puts(out, "\n");
}

void cg_line(ir_buf *out, int indent, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cg_vline(out, indent, fmt, ap);
  va_end(ap);
}

bool cg_recall(const cg_memo *m, const char *key, void *plan, size_t bytes) {
  const void *known = ir_map_get(m->matmuls, key);
  if (known)
    memcpy(plan, known, bytes);
  return known != NULL;
}

void cg_remember(cg_memo *m, const char *key, const void *plan, size_t bytes) {
  void *kept = ir_alloc(m->arena, bytes);
  memcpy(kept, plan, bytes);
  ir_map_put(m->matmuls, key, kept);
}
