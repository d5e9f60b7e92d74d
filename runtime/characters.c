// characters.c: see characters.h.
#include "runtime/characters.h"

#include <stdio.h>

void mlrt_characters_write(const mlrt_characters *c, char text[MLRT_CHARACTERS_TEXT]) {
  int len = 0;
  text[0] = '\0';
  for (int i = 0; i < c->num; i++)
    len += snprintf(text + len, (size_t)(MLRT_CHARACTERS_TEXT - len), "%s%d", i ? " " : "",
                    c->byte[i]);
}

// The number at *text, and a space if another one follows. -1: there is no byte's number.
static int take_byte(const char **text) {
  int byte = -1;
  for (; **text >= '0' && **text <= '9'; ++*text) {
    byte = (byte < 0 ? 0 : byte * 10) + (**text - '0');
    if (byte > UINT8_MAX)
      return -1;
  }
  if (**text == ' ' && (*text)[1])
    ++*text;
  else if (**text)
    return -1;
  return byte;
}

bool mlrt_characters_read(mlrt_characters *c, const char *text) {
  bool has[256] = {false};
  c->num = 0;
  do {
    int byte = take_byte(&text);
    if (byte < 0 || has[byte])
      return false;
    has[byte] = true;
    c->byte[c->num++] = (uint8_t)byte;
  } while (*text);
  return true;
}
