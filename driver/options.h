// options.h: the command line of mltc.
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "ir/diag.h"

// What mltc exits with, besides 0 and IR_EXIT_FAULT (ir/base.h).
enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_BUDGET = 3 };

// What --emit prints instead of building a trainer.
typedef enum emit_kind {
  EMIT_TRAINER,
  EMIT_AST,
  EMIT_IR,
  EMIT_KERNELS,
  EMIT_PLAN,
  EMIT_PLAN_JSON,
  EMIT_C,
  EMIT_LLVM,
  EMIT_ASM,
  EMIT_DOT,
  EMIT_CUDA,
  EMIT_PTX,
  EMIT_RESOURCES,
  EMIT_REPORT,
} emit_kind;

// What the first word asks for; without one of these a file is compiled.
typedef enum command_kind {
  COMMAND_COMPILE,
  COMMAND_MEMORY, // cmd_memory.c
} command_kind;

typedef IR_VEC(const char *) option_list;

typedef struct options {
  command_kind command;
  const char *input;  // "model.graph", "step.ir"
  const char *output; // NULL: the default of the kind
  const char *target;
  const char *cuda_compiler; // "nvrtc", "clang"; NULL: not given
  const char *precision;     // "f32", "tf32", "bf16"; NULL: not given
  const char *checkpoint;    // a policy of passes/checkpoint.h; NULL: not given
  const char *plan;          // --plan=FILE.json; NULL: not given
  int64_t memory_budget;     // bytes; 0: none
  double extra_time;         // --extra-time, of the time without it: 0.1; less than 0: not given
  int opt_level;
  emit_kind emit;
  bool allow_accumulate; // a batch may be run in parts: cmd_accumulate.c
  bool max_batch;        // search for the largest batch that the budget has room for
  const char *max;       // or for the value of this `let`; NULL: not given
  int64_t gpu_bytes;     // `mltc memory`: what there is; 0: not given
  bool json;             // `mltc memory`
  option_list defines, include_dirs, print_after, disabled;
  const char *keep_dir;
  const char *explain; // --explain CODE
  bool time_passes, verbose, dependencies, json_diagnostics, no_cache, help, version;
} options;

// False when the usage is wrong: *why says how.
bool options_parse(ir_arena *a, int argc, char **argv, options *o, const char **why);
void options_help(FILE *out);
bool options_is_ir(const options *o); // the input is IR text
bool options_disables(const options *o, const char *pass);
bool options_emits_plan(const options *o);       // --emit shows the memory plan
bool options_emits_ir(const options *o);         // --emit shows what the passes make
bool options_look_into_passes(const options *o); // they print, keep or time what they make
// Prints errors and warnings as --diagnostics asks, each once. Returns the number of errors.
size_t options_report(const options *o, ir_diags *d);
// What mltc says besides, on standard error, likewise: one message; further lines of it are indented.
typedef enum options_tone {
  OPTIONS_ERROR, // "mltc: ..."
  OPTIONS_NOTE,  // "note: ..."
  OPTIONS_HELP,  // "  ...", after an error
  OPTIONS_ANSWER,
} options_tone;
void options_say(const options *o, options_tone tone, const char *fmt, ...) IR_PRINTF(3, 4);
// Notes on each -D whose name is given another value behind it.
void options_say_overridden(const options *o);
// What was searched for: on standard output, unless what --emit prints goes there.
void options_answer(const options *o, const char *text);

#endif
