// ast.h: the syntax tree of a graph file, as written. Nothing is resolved here.
#ifndef FRONTEND_AST_H
#define FRONTEND_AST_H

#include "ir/diag.h"

typedef struct ast_expr ast_expr;
typedef struct ast_stmt ast_stmt;

typedef enum ast_expr_kind {
  AST_INT,
  AST_FLOAT,
  AST_FRACTION, // 90%
  AST_STRING,
  AST_BOOL,
  AST_NAME,
  AST_ELLIPSIS,  // ... in a list or index
  AST_LIST,      // [a, b]
  AST_TUPLE,     // (a, b)
  AST_UNARY,     // op a
  AST_BINARY,    // a op b
  AST_TRANSPOSE, // a^T
  AST_CALL,      // name(args) [as label | with again]
  AST_INDEX,     // a[items]
  AST_SLICE,     // lo:hi:step inside an index; parts may be NULL
  AST_IF,        // a if cond [else b]
  AST_RANGE,     // lo..hi
} ast_expr_kind;

typedef enum ast_op {
  AST_OP_ADD,
  AST_OP_SUB,
  AST_OP_MUL,
  AST_OP_DIV,
  AST_OP_FLOORDIV,
  AST_OP_MOD,
  AST_OP_MATMUL,
  AST_OP_POW,
  AST_OP_EQ,
  AST_OP_NE,
  AST_OP_LT,
  AST_OP_LE,
  AST_OP_GT,
  AST_OP_GE,
  AST_OP_AND,
  AST_OP_OR,
  AST_OP_NEG,
  AST_OP_NOT,
  AST_NUM_OPS
} ast_op;
const char *ast_op_text(ast_op op);

typedef struct ast_arg {
  const char *name; // NULL: by position
  ir_loc loc;       // of the name
  ast_expr *value;
} ast_arg;

struct ast_expr {
  ast_expr_kind kind;
  ast_op op;         // UNARY, BINARY
  ir_loc loc;        // the whole expression, or its part on the first line
  ir_loc op_loc;     // BINARY: the operator; CALL: the name
  uint32_t depth;    // of the tree below: bounded, so that recursion over trees is safe
  const char *text;  // NAME, STRING, CALL (name), numbers as written
  const char *label; // CALL ... as label
  const char *again; // CALL ... with again: the use whose parameters it has
  int64_t i;         // INT, BOOL
  double num;        // INT, FLOAT, FRACTION
  ast_expr *a, *b, *c;
  IR_VEC(ast_expr *) items; // LIST, TUPLE, INDEX
  IR_VEC(ast_arg) args;     // CALL
};

// f[b,t,c], u8[B], i[...], like w
typedef struct ast_type {
  const char *dtype; // "f32", "f", "i", "t"; NULL for `like`
  const char *like;
  ir_loc loc;
  IR_VEC(ast_expr *) dims;
} ast_type;

typedef struct ast_name {
  const char *text;
  ir_loc loc;
} ast_name;

typedef enum ast_stmt_kind {
  AST_ASSIGN, // names = value
  AST_PARAM,  // param|frozen name: type = value
  AST_STATE,  // state|buffer name: type = value
  AST_STORE,  // name <- value
  AST_REPEAT, // repeat [var in] value [shared] { body }
  AST_WHEN,   // if value { body } else { other }
  AST_LOSS,   // loss value, loss name = value over names
  AST_METRIC, // metric name = value
  AST_OUTPUT, // output name = value
  AST_RETURN, // return values
  AST_ERROR,  // error values: what a block says to those who use it wrongly
  AST_EXPR,   // value alone: an error, found when checking
} ast_stmt_kind;

typedef struct ast_body {
  IR_VEC(ast_stmt *) list;
} ast_body;

struct ast_stmt {
  ast_stmt_kind kind;
  ir_loc loc;       // the keyword or first name
  const char *word; // PARAM, STATE: the keyword as written
  IR_VEC(ast_name) names;
  IR_VEC(ast_name) over; // LOSS with a name: whose parameters it trains
  ast_type *type;
  ast_expr *value;
  IR_VEC(ast_expr *) values; // RETURN, ERROR
  ast_body body, other;
  bool has_else;
  bool shared; // REPEAT: all iterations have the parameters of the first
};

typedef struct ast_param {
  ast_name name;
  ast_type *type;  // NULL: none
  ast_expr *value; // default; NULL: none
} ast_param;

typedef enum ast_fn_kind {
  AST_BLOCK,
  AST_MODEL,
  AST_OPTIMIZER,
  AST_SCHEDULE,
  AST_INITIALIZER
} ast_fn_kind;
typedef struct ast_fn {
  ast_fn_kind kind;
  ast_name name;
  IR_VEC(ast_param) params;
  IR_VEC(ast_type *) results;
  ast_body body;
} ast_fn;

// One entry of data, optim or train: key = value [every ...], key every ..., or a call.
typedef struct ast_setting {
  ast_name key;    // text NULL: a call alone
  ast_expr *value; // may be NULL
  bool has_every;
  ast_expr *every; // NULL with has_every: every epoch
  ir_loc every_loc;
} ast_setting;

typedef enum ast_item_kind {
  AST_LET,
  AST_FLAG,
  AST_IMPORT,
  AST_FN,
  AST_DATA,
  AST_OPTIM,
  AST_TRAIN
} ast_item_kind;

typedef struct ast_binding {
  ast_name name;
  ast_expr *value;
} ast_binding;

typedef struct ast_item {
  ast_item_kind kind;
  IR_VEC(ast_binding) bindings; // LET, FLAG
  const char *path;             // IMPORT
  ir_loc path_loc;
  ast_fn *fn;
  ast_name of;                  // OPTIM: the loss; text NULL: none is named
  IR_VEC(ast_setting) settings; // DATA, OPTIM, TRAIN
} ast_item;

typedef struct ast_file {
  const ir_source *src;
  IR_VEC(ast_item *) items;
} ast_file;

#endif
