// utf8.c: see utf8.h.
#include "ir/utf8.h"

#include <stdbool.h>

size_t ir_utf8_character(const char *s, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  const unsigned char first = (unsigned char)*s;
  size_t n = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  *code = first & bits[n];
  for (size_t i = 1; i < n; i++) {
    if (((unsigned char)s[i] & 0xc0) != 0x80) // also the 0 at the end
      return 0;
    *code = *code << 6 | ((unsigned char)s[i] & 0x3f);
  }
  bool wrong = first >= 0xf8 || (n > 1 && *code < least[n]) ||
               (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff;
  return wrong ? 0 : n;
}
