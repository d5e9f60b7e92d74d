// check.h: what the files of the checker share.
//
// Checking and lowering are one walk: a model is executed symbolically once per function of the
// module (step, eval, predict, accum). Compile-time values (numbers, texts, lists, initialisers)
// are computed, tensors become IR nodes, blocks are expanded where they are used. Everything that
// could make this walk long or deep is bounded (FE_MAX_*), so that no input hangs or crashes it.
#ifndef FRONTEND_CHECK_H
#define FRONTEND_CHECK_H

#include "frontend/frontend.h"
#include "ir/builder.h"

enum {
  FE_MAX_CALLS = 64,                            // block calls inside each other
  FE_MAX_EVAL_DEPTH = 1200,                     // expressions inside each other, through calls
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION // any input must be done in milliseconds
  FE_MAX_STATEMENTS = 5000,
  FE_MAX_NODES = 5000,
  FE_MAX_REPEAT = 1000,
#else
  FE_MAX_STATEMENTS = 1000000, // executed
  FE_MAX_NODES = 1000000,      // of one function
  FE_MAX_REPEAT = 100000,
#endif
};
#define FE_MAX_ELEMENTS ((int64_t)1 << 40)

// --- values ------------------------------------------------------------------------------------
typedef enum fe_kind {
  FE_BAD, // an error was reported: whatever uses it stays silent
  FE_NONE,
  FE_NUM,
  FE_BOOL,
  FE_STR,
  FE_INIT,
  FE_LIST, // lists and tuples
  FE_TENSOR,
} fe_kind;

typedef enum fe_init_kind {
  FE_INIT_CONSTANT, // a
  FE_INIT_UNIFORM,  // a .. b
  FE_INIT_NORMAL,   // mean 0, deviation a
  FE_INIT_XAVIER,
  FE_INIT_HE,
  FE_INIT_WRITTEN, // in the language
} fe_init_kind;

typedef struct fe_init {
  fe_init_kind kind;
  double a, b;
  const struct fe_written_init *written;
} fe_init;

typedef struct fe_value fe_value;
// Where items of lists lie that were made by joining others: a longer one goes on in the same place.
typedef struct fe_room {
  IR_VEC(const fe_value *) items;
} fe_room;
struct fe_value {
  fe_kind kind;
  bool is_int;                  // NUM
  int64_t i;                    // NUM when is_int, BOOL
  double num;                   // NUM, always
  const char *str;              // STR
  fe_init init;                 // INIT
  const fe_value *const *items; // LIST
  size_t num_items;
  fe_room *room;                // LIST: of a joined one
  ir_node *node;                // TENSOR
  const char *const *dim_names; // TENSOR: per axis, NULL entries; or NULL
  ir_state *state;              // TENSOR: `name <- x` may change it
  ir_state *param;              // TENSOR: the parameter it is; a loss may train it
  const char *flag;             // TENSOR: the flag it reads
  const char *from;             // NUM: the parameter whose shape bound this dimension
};

// --- the walk ----------------------------------------------------------------------------------
// Names of instances in one block or repeat iteration: linear, linear_2, ...
typedef struct fe_naming {
  struct fe_naming *outer; // of a repeat: the names around it
  const char *prefix;      // "layer.3.attn"; NULL at the top
  const char *suffix;      // ".3" inside a repeat, else ""
  ir_map *counts;          // base name -> uses here
  ir_map *uses;            // name -> fe_use
  const ir_map *gone; // the same, of the last iteration of a repeat here that has ended; or NULL
} fe_naming;

// A use of a block: `disc = block(x)` is "block", or what `as` says. `with` names it.
typedef struct fe_use {
  const ast_fn *fn;
  const ast_expr *call; // NULL: it is a copy
  const char *path;     // of its parameters
  const char *site;     // the same, but of a copy that of what it is a copy of
  int again;            // how often `with` did
  bool copy;            // states like those of another use
} fe_use;

typedef struct fe_frame {
  struct fe_frame *caller;
  const ast_fn *fn;
  ir_loc used; // where the call is
  int depth;
  bool is_std; // sees only the standard files
  fe_naming *names;
  const char *site;  // of the use that it is
  const char *again; // in a use with parameters that are there already: tells it apart; else NULL
  bool copied;       // and they are states, copies of the parameters
  ir_map *vars;      // name -> fe_value; "..." -> list of dimensions
  ir_map *dims;      // dimensions as the parameters bound them
  const fe_value *result;
  ir_loc result_loc;
  bool returned;
} fe_frame;

// The use of an initializer: what it computes stands in the function `init`.
typedef struct fe_written_init {
  const ast_fn *fn;
  bool is_std;
  ir_loc used;
  const struct fe_value *const *values; // by parameter of fn; NULL: its default
} fe_written_init;

// A state that `init` fills.
typedef struct fe_param {
  ir_state *state;
  fe_init init; // unless state->as
} fe_param;

typedef struct fe_write {
  ir_state *state;
  ir_node *node;
  ir_loc loc;
} fe_write;

// What is made small, and the parameters that are trained for it.
typedef struct fe_goal {
  const char *name; // NULL: the one loss of a model
  ir_node *loss;
  ir_loc loc;
  IR_VEC(ir_state *) trained; // in order of declaration
} fe_goal;

// One function of the module while it is built.
typedef struct fe_pass {
  ir_builder b;
  bool training;   // `training` in the language
  bool writes;     // what `<-` gives a state stays when the function ends
  bool optimizing; // in an optimiser or schedule: `step` is known
  bool starting;   // in `init`: every state is there
  // What `step` is in an optimiser that does not run in every step; NULL: the step.
  ir_node *updates;
  IR_VEC(ir_node *) reads;  // by state id
  IR_VEC(fe_write) pending; // new values of states, which fe_flush_writes stores
  ir_map *written;          // state name -> index + 1 into pending
  IR_VEC(fe_goal *) goals;  // one without a name, or any number with names
  ir_map *goal_of;          // parameter's name -> its goal
  ir_node *random_step;
  const char *output_name; // for predict: the first argument of the loss
  ir_node *output;
  ir_loc output_loc;
  IR_VEC(ir_result) metrics;
  IR_VEC(ir_result) outputs;
  ir_map *declared;           // path of a parameter or state of this function -> ir_loc
  ir_map *results;            // name of a metric or output -> ir_loc
  IR_VEC(ir_state *) trained; // read by the model, in order of declaration
} fe_pass;

typedef struct fe {
  ir_arena *arena;
  ir_diags *diags, *silent; // silent: swallows repeated errors
  ir_map *reported;         // places and codes, each reported once
  const fe_options *options;
  const ir_source *main;
  ir_module *module;
  ir_map *lets, *flags;  // name -> fe_value / ir_state
  ir_map *places;        // name of one of them -> ir_loc
  ir_map *file_lets;     // as the file has them: another map than `lets` where the batch is divided
  ir_map *fns, *std_fns; // name -> ast_fn (blocks)
  ir_map *optimizers, *std_optimizers, *schedules, *std_schedules;
  ir_map *initializers, *std_initializers;
  ir_map *used_defines;
  ir_map *sites;   // of calls -> names of their uses
  ir_map *trained; // names of the parameters that the model has in training
  const ast_fn *model;
  const ast_file *file; // whose items are taken
  IR_VEC(const ast_item *) sections;
  IR_VEC(const char *) importing; // paths being read
  IR_VEC(const char *) imported;
  IR_VEC(fe_param) params;
  fe_pass *pass;
  fe_frame *frame;
  int depth;
  int64_t statements;
  const fe_value *first_arg; // of the block call evaluated last
  struct {                   // while `<-` is evaluated for each state of a copy:
    const char *name;        // "linear.w"; NULL: no such store is evaluated
    const ast_fn *fn;        // whose uses stand for their state of that name,
    const fe_frame *frame;   // here
  } member;
  int64_t accumulate;
  bool froze; // `freeze` was true of a parameter
} fe;

extern const fe_value fe_bad, fe_none;

// --- errors --------------------------------------------------------------------------------------
// A diagnostic with the chain of block uses. The same error at the same place is reported once.
ir_diag *fe_error(fe *c, ir_loc at, const char *code, const char *fmt, ...) IR_PRINTF(4, 5);
// The same of a value: where it is wrong for several uses in the same way, this is said of the first.
ir_diag *fe_error_about(fe *c, const ir_node *n, ir_loc at, const char *code, const char *fmt, ...)
    IR_PRINTF(5, 6);
// Adds where a name was taken; NULL: in no file.
void fe_say_first(ir_diag *d, const ir_loc *first);
// A warning, once per place.
ir_diag *fe_warn(fe *c, ir_loc at, const char *code, const char *fmt, ...) IR_PRINTF(4, 5);
// An error, as a value.
#define FE_FAIL(c, ...) (fe_error((c), __VA_ARGS__), &fe_bad)
// Adds "did you mean" from the keys of up to several maps and words; NULL entries are skipped.
void fe_suggest(fe *c, ir_diag *d, const char *word, const ir_map *const *maps, size_t num_maps,
                const char *const *words, size_t num_words);
bool fe_tick(fe *c, ir_loc at); // one more unit of work; false: too much (reported)

// --- value.c -------------------------------------------------------------------------------------
const fe_value *fe_int(fe *c, int64_t i);
const fe_value *fe_num(fe *c, double v); // whole numbers become integers
const fe_value *fe_float(fe *c, double v);
const fe_value *fe_bool(fe *c, bool v);
const fe_value *fe_str(fe *c, const char *s);
const fe_value *fe_list(fe *c, const fe_value *const *items, size_t n);
// a + b: the items of one, then those of the other.
const fe_value *fe_join_lists(fe *c, ir_loc at, const fe_value *a, const fe_value *b);
const fe_value *fe_tensor(fe *c, ir_node *n); // NULL: fe_bad
const fe_value *fe_tensor_named(fe *c, ir_node *n, const char *const *dim_names);
const fe_value *fe_make_init(fe *c, fe_init_kind kind, double a, double b);
const char *fe_text(fe *c, const fe_value *v);     // texts and numbers as they are
const char *fe_describe(fe *c, const fe_value *v); // "f32[b=64, 784]", "the number 3"
const char *fe_shape_text(fe *c, const fe_value *v);
bool fe_is_bad(const fe_value *v);

// What a place needs; false when it is something else (reported unless bad).
bool fe_want_int(fe *c, const fe_value *v, ir_loc at, const char *what, int64_t *out);
bool fe_want_num(fe *c, const fe_value *v, ir_loc at, const char *what, double *out);
bool fe_want_bool(fe *c, const fe_value *v, ir_loc at, const char *what, bool *out);
bool fe_want_tensor(fe *c, const fe_value *v, ir_loc at, const char *what);
// A list of whole numbers, or one.
bool fe_want_ints(fe *c, const fe_value *v, ir_loc at, const char *what, int max, int64_t *out,
                  int *num);

// --- scope.c -------------------------------------------------------------------------------------
fe_frame *fe_enter(fe *c, const ast_fn *fn, ir_loc used, fe_naming *names, bool is_std);
void fe_leave(fe *c);
fe_naming *fe_naming_new(fe *c, fe_naming *outer, const char *prefix, const char *suffix);
const char *fe_instance(fe *c, const char *base); // path of a new instance
// Of a call, or (NULL) of a copy.
fe_use *fe_use_new(fe *c, const ast_fn *fn, const ast_expr *call, const char *base);
bool fe_is_used(const fe *c, const char *base); // there is an instance of the name here
// "linear.w" of "disc.linear.w" below "disc", "" of "disc" itself; NULL: it is not below.
const char *fe_below(const char *path, const char *name);
const char *fe_path(fe *c, const char *name); // path of a parameter or state
void fe_set(fe *c, const char *name, const fe_value *v);
// Names such as `training`, which mean the same everywhere; fe_check_free reports them.
bool fe_is_reserved(const char *name);
bool fe_check_free(fe *c, const ast_name *name);
const fe_value *fe_lookup(fe *c, const char *name, ir_loc at);
// The file's, or else the standard one. NULL: there is none.
const ast_fn *fe_find_block(fe *c, const char *name, bool *is_std);
const ast_fn *fe_find_initializer(fe *c, const char *name, bool *is_std);
const fe_value *fe_read(fe *c, ir_state *s);
const fe_value *fe_present(fe *c, ir_state *s);     // the new value, when it has one
fe_use *fe_find_use(const fe *c, const char *name); // NULL: there is none
ir_loc fe_node_loc(const fe *c, ir_loc at);         // in the main file

// --- types.c -------------------------------------------------------------------------------------
// A concrete type: `param w: f[V,C]`. Names of dimensions go to `names`.
bool fe_eval_type(fe *c, const ast_type *t, ir_type *out, const char *const **names);
// Binds the dimensions of an argument that are names. `param`: its own.
void fe_bind_names(fe *c, const ast_type *t, const fe_value *v, const char *param);
// Matches an argument, binding new dimensions. `param`: its name.
const fe_value *fe_match_param(fe *c, const ast_type *t, const fe_value *v, const char *param,
                               ir_loc at);
bool fe_match_result(fe *c, const ast_type *t, const fe_value *v, ir_loc at);
bool fe_check_size(fe *c, ir_loc at, const ir_type *t);
// The dimensions of a shape list; `...` expanded; -1 allowed when `wild`.
bool fe_want_shape(fe *c, const fe_value *v, ir_loc at, bool wild, int64_t *dims, int *rank);

// --- expr.c --------------------------------------------------------------------------------------
const fe_value *fe_eval(fe *c, const ast_expr *e);
// Of an `if`, which chooses what the program is made of: not a tensor, of which the error says what to write.
bool fe_want_condition(fe *c, const ast_expr *e, bool *out);

// --- constants.c ---------------------------------------------------------------------------------
const fe_value *fe_const_binary(fe *c, const ast_expr *e, const fe_value *a, const fe_value *b);
const fe_value *fe_const_math(fe *c, ir_loc at, ir_op op, double x);

// --- tensors.c -----------------------------------------------------------------------------------
// Checked
// construction: shape rules become diagnostics. NULL after an error.
ir_node *fe_emit(fe *c, ir_loc at, ir_op op, int num_in, ir_node *const *in, int num_attrs,
                 const ir_attr *attrs, const ir_type *type);
ir_node *fe_emit_unary(fe *c, ir_loc at, ir_op op, ir_node *x);
ir_node *fe_emit_cast(fe *c, ir_loc at, ir_node *x, ir_dtype t);
ir_node *fe_emit_const(fe *c, ir_loc at, ir_dtype t, double v);
ir_node *fe_emit_reshape(fe *c, ir_loc at, ir_node *x, int rank, const int64_t *dims);
ir_node *fe_emit_broadcast(fe *c, ir_loc at, ir_node *x, int rank, const int64_t *dims);
// Whether a tensor of element type t can have this number or truth value as a constant (reported).
bool fe_check_fits(fe *c, ir_loc at, const fe_value *v, ir_dtype t);
// Whether a setting, a number or a list of them, is neither infinite in element type t nor 0 where it was not (reported).
bool fe_check_setting(fe *c, ir_loc at, const char *what, const fe_value *v, ir_dtype t);
// It as a tensor of element type t in the shape of `other`.
const fe_value *fe_number_to_tensor(fe *c, ir_loc at, const fe_value *v, ir_dtype t,
                                    const ir_type *other);
const fe_value *fe_binary(fe *c, ast_op op, ir_loc at, const fe_value *a, const fe_value *b);
// The IR op over broadcast operands of one element type (max, min).
const fe_value *fe_pointwise(fe *c, ir_op op, ir_loc at, const fe_value *a, const fe_value *b);
const fe_value *fe_select(fe *c, ir_loc at, const fe_value *cond, const fe_value *a,
                          const fe_value *b);
const fe_value *fe_matmul(fe *c, ir_loc at, const fe_value *a, bool ta, const fe_value *b, bool tb);
const fe_value *fe_swap_last(fe *c, ir_loc at, const fe_value *a);

// --- index.c -------------------------------------------------------------------------------------
const fe_value *fe_index(fe *c, const ast_expr *e, const fe_value *of);

// --- model.c: the states that every module has: step, seed
ir_node *fe_read_named(fe *c, const char *name);
uint32_t fe_stream(const char *name); // of random numbers: 31 bits of FNV-1a
// A node of random values with a stream of its own
ir_node *fe_emit_random(fe *c, ir_loc at, ir_op op, const ir_type *type);

// --- elsewhere.c ---------------------------------------------------------------------------------
// How a function of other tools is written here, such as 'running_sum(x, axis)' for 'cumsum'; NULL when it is unknown.
const char *fe_name_here(const char *theirs);
// "f32" for "float32", "true" for "True".
const char *fe_word_here(const char *theirs);

// --- builtins.c, calls.c -------------------------------------------------------------------------
bool fe_is_builtin(const char *name);
void fe_builtin_names(fe *c, const char *const **names, size_t *num);
const fe_value *fe_call_builtin(fe *c, const ast_expr *call);
const fe_value *fe_call(fe *c, const ast_expr *call);
// Places arguments at parameters: out[i] is NULL where none was given. False after errors.
// Arguments from `first` on belong to parameters from `first` on (the earlier ones are implicit).
bool fe_place_args(fe *c, const ast_expr *call, const char *const *params, size_t num_params,
                   size_t first, const ast_arg **out);
// The same for optimisers, schedules and initialisers, whose first parameters are implicit: the
// arguments by parameter, or NULL after errors (also where one without a default is missing).
const ast_arg **fe_place_rest(fe *c, const ast_expr *call, const ast_fn *fn, size_t implicit);
// In the frame of fn: sets its parameters; NULL stands for the default. False after errors.
bool fe_bind_values(fe *c, const ast_fn *fn, const fe_value *const *values);
// Expands fn, whose names begin with `prefix`: what it returns.
const fe_value *fe_run_fn(fe *c, const ast_fn *fn, bool is_std, ir_loc used, const char *prefix,
                          const fe_value *const *values);

// --- initializers.c ------------------------------------------------------------------------------
// The initialiser that a call of one stands for.
const fe_value *fe_call_initializer(fe *c, const ast_expr *call);
// The nodes that compute the first value of s.
ir_node *fe_written_value(fe *c, const ir_state *s, const fe_written_init *i);

// --- statements.c --------------------------------------------------------------------------------
void fe_run_body(fe *c, const ast_body *body);
// The state of a parameter or buffer: made at its first declaration, found afterwards.
ir_state *fe_declare_state(fe *c, const char *path, ir_type type, ir_role role, fe_init init,
                           ir_loc at);

// Takes the path for a declaration, or, in a use with parameters that are there, finds it taken. False after errors.
bool fe_declare_once(fe *c, const ast_name *name, const char *path);
// The initialiser of a declaration: zeros, normal(0.02), a number. `number`: the value of a constant one, else NULL.
bool fe_want_init(fe *c, const ast_stmt *s, fe_init *out, const fe_value **number);
bool fe_check_init(fe *c, const ast_stmt *s, const ir_type *t, const fe_init *init,
                   const fe_value *number);
// The next value of the state `to`, which must have its type. NULL after errors.
ir_node *fe_store_value(fe *c, const ast_stmt *s, const fe_value *to, const fe_value *v);

// A node takes the name of the variable it is assigned to, unless the variable is only another name
// for something that has one.
void fe_name_node(fe *c, const fe_value *v, const char *name, const ast_expr *from);
void fe_assign(fe *c, const char *name, const fe_value *v, const ast_expr *from);
bool fe_in_model(fe *c, const ast_stmt *s, const char *word);
ir_node *fe_want_scalar(fe *c, const fe_value *v, ir_loc at, const char *what);
// Warns where predict leaves an output out, which has no row for each sample. `help`: what to do about it.
void fe_check_rows(fe *c, ir_loc at, const char *name, const fe_value *v, const char *help);
// Whether `name` is a new name of a result; takes it.
bool fe_take_result(fe *c, const ast_name *name);

// --- copies.c: states like a use of a block ------------------------------------------------------
bool fe_is_copy(const fe *c, const ast_stmt *s); // a declaration of states
void fe_declare_copy(fe *c, const ast_stmt *s);
bool fe_store_copy(fe *c, const ast_stmt *s); // false: the name is not that of a copy
// What the name of a use stands for while such a store is evaluated; NULL: nothing of its own.
const fe_value *fe_member(fe *c, const char *name, ir_loc at);

// --- losses.c: `loss`: goals and whose parameters they train -------------------------------------
void fe_run_loss(fe *c, const ast_stmt *s);
void fe_check_goals(fe *c); // at the end of a model: there is one, each parameter is trained by one
// Whether optim { freeze = ... } holds for the parameter.
bool fe_is_frozen(fe *c, const char *path, const ir_type *type);
void fe_warn_of_freeze(fe *c); // it asks for names that no parameter has

// --- vary.c: what --max-batch and --max=NAME search for; of a file without errors
void fe_find_varied(fe *c, fe_vary *v);
// Whether the file has this name in an expression, wherever that stands (mentions.c).
bool fe_mentions(const ast_file *file, const char *name);

// --- split.c: the batch in parts (fe_split)
// The value that the model sees of a constant.
const fe_value *fe_split_value(fe *c, const char *name, const fe_value *v);
// From here on constants are as the file has them. Returns those from before, to be put back.
ir_map *fe_use_file_lets(fe *c);
// After the settings of train { }: accumulates over all parts.
void fe_split_steps(fe *c);

// --- model.c, optim.c, init.c, settings.c --------------------------------------------------------
void fe_build_functions(fe *c);
void fe_run_model(fe *c);
fe_pass *fe_pass_new(fe *c, const char *name, bool training);
void fe_flush_writes(fe *c);
void fe_store(fe *c, ir_state *s, ir_node *n, ir_loc at);
// Adds gradients, clipping, schedule and optimiser of a goal to the current pass.
void fe_optimize(fe *c, fe_goal *g);
void fe_check_optimizers(fe *c); // only reports errors in their calls
// The frame in which settings of optim { } are evaluated: the file, plus `rank` and `name` of a
// parameter (NULL: none). fe_leave ends it.
void fe_enter_optim(fe *c, ir_loc at, const char *param, int rank);
void fe_build_accum(fe *c);
void fe_build_init(fe *c);
void fe_lower_data(fe *c);
void fe_lower_train(fe *c); // fills module->config, c->accumulate
const ast_setting *fe_find_setting(const fe *c, ast_item_kind section, const char *key);
void fe_unknown_setting(fe *c, const char *const *names, size_t num, ast_name name,
                        const char *where);
void fe_check_optim_keys(fe *c);
const ast_item *fe_own_optim(const fe *c, const char *loss); // optim NAME { }; NULL: there is none
// Of optim NAME { } for the loss NAME, when there is such a section, else of optim { }. key NULL:
// the optimiser's call.
const ast_setting *fe_optim_setting(const fe *c, const char *loss, const char *key);

#endif
