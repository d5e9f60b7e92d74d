// utf8.h: characters of UTF-8.
#ifndef IR_UTF8_H
#define IR_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Bytes of the character that the text `s` begins with, and its number; 0: it begins with none (RFC 3629: no longer form than
// needed, no surrogates, nothing above U+10FFFF).
size_t ir_utf8_character(const char *s, uint32_t *code);

#endif
