// settings.c: see the header.
#include "ir/settings.h"

#include <string.h>

#define MOST 1e15 // a count: doubles still tell its neighbours apart

const ir_setting_rule ir_setting_rules[IR_NUM_SETTINGS] = {
    {"steps", 0, MOST, true},
    {"epochs", 0, 1e9, false},
    {"seed", -0x1p53, 0x1p53, true},
    {"shuffle", 0, 1, true},
    {"eval_every", 0, MOST, true},
    {"log_every", 0, MOST, true},
    {"save_every", -1, MOST, true},
    {"accumulate", 1, MOST, true},
    {.key = "eval"},
    {.key = "micro_batches"},
    {.key = "batch"},
    {.key = "precision"},
    {.key = "checkpoint"},
    {.key = "remake"},
    {.key = "memory_budget"},
    {.key = "host_bandwidth"},
    {.key = "device_flops"},
    {.key = "device_products"},
    {.key = "device_bandwidth"},
};

const ir_setting_rule *ir_find_setting_rule(const char *key) {
  for (size_t i = 0; i < IR_NUM_SETTINGS; i++)
    if (!strcmp(ir_setting_rules[i].key, key))
      return &ir_setting_rules[i];
  return NULL;
}
