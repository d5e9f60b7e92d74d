// json.c: see json.h.
#include "ir/json.h"

#include <stdint.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

// Bytes of the character that `s` begins with; 0: it begins with none (RFC 3629: no longer form than
// needed, no surrogates, nothing above U+10FFFF).
static size_t character(const unsigned char *s) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  uint32_t code = n >= 3 ? s[0] & 0x0f : s[0] & 0x1f;
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) // also the 0 at the end
      return 0;
    code = code << 6 | (s[i] & 0x3f);
  }
  bool wrong = n > 1 && (code < least[n] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff);
  return wrong ? 0 : n;
}

char *ir_utf8(ir_arena *a, const char *text) {
  char *valid = ir_alloc(a, strlen(text) * strlen(replacement) + 1), *to = valid;
  for (const char *s = text; *s;) {
    size_t n = character((const unsigned char *)s);
    memcpy(to, n ? s : replacement, n ? n : strlen(replacement));
    to += n ? n : strlen(replacement);
    s += n ? n : 1;
  }
  *to = 0;
  return valid;
}

static bool is_utf8(const char *text) {
  size_t n = 1;
  for (const char *s = text; n && *s; s += n)
    n = character((const unsigned char *)s);
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
