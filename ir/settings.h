// settings.h: the settings of a module (`config` lines), by name: one table for what reads their text, which warns of
// others, and for what checks their values. docs/ir.md says what they mean.
#ifndef IR_SETTINGS_H
#define IR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ir_setting_rule {
  const char *key;
  // What a trainer reads as a number, and would round or refuse, is in low .. high; else they are both 0. A flag may
  // give it, too: only the trainer knows to what.
  double low, high;
  bool whole;
} ir_setting_rule;

enum { IR_NUM_SETTINGS = 19 };
extern const ir_setting_rule ir_setting_rules[IR_NUM_SETTINGS];

// NULL: nothing reads a setting of that name.
const ir_setting_rule *ir_find_setting_rule(const char *key);

#endif
