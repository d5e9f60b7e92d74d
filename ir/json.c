// json.c: see json.h.
#include "ir/json.h"
#include "ir/utf8.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

char *ir_utf8(ir_arena *a, const char *text) {
  char *valid = ir_alloc(a, strlen(text) * strlen(replacement) + 1), *to = valid;
  uint32_t code;
  for (const char *s = text; *s;) {
    size_t n = ir_utf8_character(s, &code);
    memcpy(to, n ? s : replacement, n ? n : strlen(replacement));
    to += n ? n : strlen(replacement);
    s += n ? n : 1;
  }
  *to = 0;
  return valid;
}

static bool is_utf8(const char *text) {
  size_t n = 1;
  uint32_t code;
  for (const char *s = text; n && *s; s += n)
    n = ir_utf8_character(s, &code);
  return n > 0;
}

json_object *ir_json_text(const char *text) {
  if (!text || is_utf8(text))
    return text ? json_object_new_string(text) : NULL;
  ir_arena *a = ir_arena_new();
  json_object *o = json_object_new_string(ir_utf8(a, text));
  ir_arena_free(a);
  return o;
}
