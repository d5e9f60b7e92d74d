// json.h: text in JSON documents.
#ifndef IR_JSON_H
#define IR_JSON_H

#include <json-c/json.h>

#include "ir/base.h"

// JSON is UTF-8 and names of files need not be: `text` with U+FFFD for each byte that begins no character.
char *ir_utf8(ir_arena *a, const char *text);
// A string with that; NULL (JSON's null) for NULL.
json_object *ir_json_text(const char *text);

#endif
