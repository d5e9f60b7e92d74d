// json.h: text in JSON documents.
#ifndef IR_JSON_H
#define IR_JSON_H

#include <json-c/json.h>

// A string with `text`; NULL (JSON's null) for NULL. JSON is UTF-8 and names of files need not be: each byte that
// begins no character stands as U+FFFD.
json_object *ir_json_text(const char *text);

#endif
