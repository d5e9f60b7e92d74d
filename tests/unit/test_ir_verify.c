// test_ir_verify.c: the verifier, one case per rule. A sound module is broken in one
// place and the rule must say so. At the end the sources of the verifier are read: a rule that
// no case here has made to speak is a failure.
#include "tests/unit/support_ir.h"

#include <math.h>
#include <string.h>

static const char plain[] = "mltc-ir 1\n"
                            "module t\n"
                            "state w : f32[4] role=param\n"
                            "state n : i64[] role=counter\n"
                            "state lr : f32[] role=flag value=0.1\n"
                            "func step {\n"
                            "  %x = input : f32[4]\n"
                            "  %w = read @w : f32[4]\n"
                            "  %y = add %x, %w : f32[4]\n"
                            "  %s = sum %y {axes=[0]} : f32[1]\n"
                            "  %loss = reshape %s : f32[]\n"
                            "  write @w, %y\n"
                            "  result loss loss = %loss\n"
                            "}\n"
                            "func eval {\n"
                            "  %x = input : f32[4]\n"
                            "  result output x = %x\n"
                            "}\n";
enum { X, W, Y, S, LOSS, WRITE_W }; // nodes of `step`

static const char fused[] = "mltc-ir 1\n"
                            "module t\n"
                            "state w : f32[4] role=param\n"
                            "func step {\n"
                            "  %x = input : f32[4]\n"
                            "  kernel one loop {\n"
                            "    %a = neg %x : f32[4]\n"
                            "    %b = abs %a : f32[4]\n"
                            "  }\n"
                            "  %v = reshape %b : f32[2,2]\n"
                            "  kernel two loop {\n"
                            "    %c = exp %v : f32[2,2]\n"
                            "    %d = add %c, %v : f32[2,2]\n"
                            "  }\n"
                            "  result output d = %d\n"
                            "}\n";
enum { FX, FA, FB, FV, FC, FD };

typedef struct broken {
  ir_module *m;
  ir_func *f, *other;
  ir_node **n; // nodes of f
} broken;

// --- breaking the plain module -------------------------------------------------------------------
static void operand_null(broken *b) {
  b->n[Y]->in[0] = NULL;
}
static void operand_foreign(broken *b) {
  b->n[Y]->in[1] = b->other->nodes.at[0];
}
static void operand_late(broken *b) {
  ir_node *t = b->n[Y];
  b->n[Y] = b->n[S];
  b->n[S] = t;
}
static void operand_count(broken *b) {
  b->n[Y]->num_in = 1;
}
static void attr_wrong(broken *b) {
  int64_t axis = 5;
  ir_attr *a = IR_NEW(b->m->arena, ir_attr);
  *a = ir_a_ints(b->m->arena, IR_ATTR_AXES, &axis, 1);
  b->n[S]->attrs = a;
}
static void attr_missing(broken *b) {
  b->n[S]->num_attrs = 0;
}
static void attr_extra(broken *b) {
  b->n[Y]->attrs = b->n[S]->attrs;
  b->n[Y]->num_attrs = 1;
}
static void type_wrong(broken *b) {
  b->n[Y]->type.dims[0] = 9;
}
static void read_type(broken *b) {
  b->n[W]->type.dtype = IR_F64;
}
static void name_bad(broken *b) {
  b->n[Y]->name = "a b";
}
static void name_twice(broken *b) {
  b->n[Y]->name = "x";
}
static void write_type(broken *b) {
  b->n[WRITE_W]->state = b->m->states.at[1];
}
static void state_on_add(broken *b) {
  b->n[Y]->state = b->m->states.at[0];
}
static void state_none(broken *b) {
  b->n[W]->state = NULL;
}
static void id_taken(broken *b) {
  b->n[Y]->id = b->n[X]->id;
}
static void id_high(broken *b) {
  b->n[Y]->id = b->f->next_id + 7;
}
static void result_name(broken *b) {
  b->f->results.at[0].name = "%";
}
static void result_foreign(broken *b) {
  b->f->results.at[0].node = b->other->nodes.at[0];
}
static void result_write(broken *b) {
  b->f->results.at[0].node = b->n[WRITE_W];
}
static void func_name(broken *b) {
  b->f->name = "";
}
static void func_twice(broken *b) {
  b->other->name = "step";
}
static void func_module(broken *b) {
  b->f->module = ir_module_new(b->m->arena, "u");
}
static void state_name(broken *b) {
  b->m->states.at[0]->name = "a-b";
}
static void state_twice(broken *b) {
  b->m->states.at[0]->name = "n";
}
static void state_type(broken *b) {
  b->m->states.at[1]->type.dims[0] = 0, b->m->states.at[1]->type.rank = 1;
}
static void state_id(broken *b) {
  b->m->states.at[1]->id = 7;
}
static void module_name(broken *b) {
  b->m->name = "m/n";
}
static void budget(broken *b) {
  ir_set_config(b->m, (ir_setting){"memory_budget", IR_SET_STR, 0, "64MiB"});
}
static void micro_batches(broken *b) {
  ir_set_config(b->m, (ir_setting){"micro_batches", IR_SET_NUM, 1 << 21, NULL});
}
static void steps_text(broken *b) {
  ir_set_config(b->m, (ir_setting){"steps", IR_SET_STR, 0, "many"});
}
static void steps_broken(broken *b) {
  ir_set_config(b->m, (ir_setting){"steps", IR_SET_NUM, 1.5, NULL});
}
static void steps_negative(broken *b) {
  ir_set_config(b->m, (ir_setting){"log_every", IR_SET_NUM, -1, NULL});
}
static void shuffle_many(broken *b) {
  ir_set_config(b->m, (ir_setting){"shuffle", IR_SET_NUM, 7, NULL});
}
static void epochs_none(broken *b) {
  ir_set_config(b->m, (ir_setting){"epochs", IR_SET_NUM, NAN, NULL});
}
static void steps_flag(broken *b) {
  ir_set_config(b->m, (ir_setting){"steps", IR_SET_FLAG, 0, "n"}); // a counter
}
static void eval_unknown(broken *b) {
  ir_set_config(b->m, (ir_setting){"eval", IR_SET_STR, 0, "test"});
}
static void accumulate_alone(broken *b) {
  ir_set_config(b->m, (ir_setting){"accumulate", IR_SET_NUM, 2, NULL});
}
static void input_unknown(broken *b) {
  b->other->nodes.at[0]->name = "z";
}
static void input_type(broken *b) {
  b->other->nodes.at[0]->type.dims[0] = 8;
}
static void kernel_none(broken *b) {
  ir_kernel *k = IR_NEW(b->m->arena, ir_kernel);
  k->name = "k";
  b->n[Y]->kernel = k;
}

// --- breaking the fused module -------------------------------------------------------------------
static void member_foreign(broken *b) {
  ir_node *n = IR_NEW(b->m->arena, ir_node);
  n->name = "foreign";
  b->f->kernels.at[0]->nodes.at[1] = n;
}
static void member_field(broken *b) {
  b->n[FA]->kernel = b->f->kernels.at[1];
}
static void member_order(broken *b) {
  ir_kernel *k = b->f->kernels.at[0];
  k->nodes.at[0] = b->n[FB];
  k->nodes.at[1] = b->n[FA];
}
static void anchor_foreign(broken *b) {
  b->f->kernels.at[0]->anchor = b->n[FC];
}
static void kernel_name(broken *b) {
  b->f->kernels.at[0]->name = "a b";
}
static void kernel_id(broken *b) {
  b->f->kernels.at[0]->id = 1;
}
static void kernel_unknown(broken *b) {
  ir_kernel *k = IR_NEW(b->m->arena, ir_kernel);
  k->name = "k";
  b->n[FV]->kernel = k;
}
// %a of kernel one goes to kernel two's end and is used by nothing in between.
static void kernel_scattered(broken *b) {
  ir_node *b_node = b->n[FB];
  b_node->in[0] = b->n[FX];
  b->n[FA]->kernel = b->f->kernels.at[1];
  b->f->kernels.at[0]->nodes.at[0] = b_node;
  b->f->kernels.at[0]->nodes.num = 1;
  ir_kernel *two = b->f->kernels.at[1];
  two->nodes.at[2] = two->nodes.at[1]; // room: vectors grow by eight
  two->nodes.at[1] = two->nodes.at[0];
  two->nodes.at[0] = b->n[FA];
  two->nodes.num = 3;
}
static void kernels_swapped(broken *b) {
  ir_kernel **k = b->f->kernels.at, *t = k[0];
  k[0] = k[1];
  k[1] = t;
  k[0]->id = 0;
  k[1]->id = 1;
}

static void clone_of_other(broken *b) {
  b->f->kernels.at[1]->clone_of = b->f->kernels.at[0];
}
static void clone_of_itself(broken *b) {
  b->f->kernels.at[0]->clone_of = b->f->kernels.at[0];
}

// A conversion outside of kernels, of %x: used by a neg, named by a result; and what is none.
static void folded_used(broken *b) {
  b->n[FX]->folded = true; // an input
}
static void folded_other(broken *b) {
  ir_node *n = b->n[FA];
  ir_kernel *one = b->f->kernels.at[0];
  n->op = IR_TF32;
  n->num_in = 1;
  n->folded = true;
  n->kernel = NULL;
  one->nodes.at[0] = b->n[FB];
  one->nodes.num = 1;
}
static void folded_result(broken *b) {
  folded_other(b);
  b->f->results.at[0].node = b->n[FA];
}

typedef struct change {
  const char *base;
  void (*apply)(broken *b);
  const char *want; // part of a fault
} change;

static const change changes[] = {
    {plain, operand_null, "operand 1 (none) is not a node of function 'step'"},
    {plain, operand_foreign, "operand 2 (%x) is not a node of function 'step'"},
    {plain, operand_late, "operand %y comes after its user %s"},
    {plain, operand_count, "add: 'add' takes 2 operands, not 1"},
    {plain, attr_wrong, "sum: axis 5 does not exist in [4]"},
    {plain, attr_missing, "sum: 'sum' needs the attribute 'axes'"},
    {plain, attr_extra, "add: 'add' has no attribute 'axes'"},
    {plain, type_wrong, "add gives f32[4], the node says f32[9]"},
    {plain, read_type, "read gives f32[4], the node says f64[4]"},
    {plain, name_bad, "'a b' is not a name"},
    {plain, name_twice, "two values are called %x"},
    {plain, write_type, "state 'n' is i64[], the value written is f32[4]"},
    {plain, state_on_add, "add cannot refer to a state"},
    {plain, state_none, "read refers to no state of this module"},
    {plain, id_taken, "%y has the id 0, which is taken"},
    {plain, id_high, "which is out of range"},
    {plain, result_name, "result '%' is not a name"},
    {plain, result_foreign, "result 'loss' is not a node of function 'step'"},
    {plain, result_write, "result 'loss' is a write, which has no value"},
    {plain, func_name, "function '' is not a name"},
    {plain, func_twice, "two functions are called 'step'"},
    {plain, func_module, "function 'step' belongs to another module"},
    {plain, state_name, "state 'a-b' is not a name"},
    {plain, state_twice, "two states are called 'n'"},
    {plain, state_type, "state 'n': i64[0] has an empty axis"},
    {plain, state_id, "state 'n' has the id 7 at place 1"},
    {plain, module_name, "module 'm/n' is not a name"},
    {plain, budget,
     "config memory_budget must be a whole number of bytes, above 0, and is \"64MiB\""},
    {plain, micro_batches,
     "config micro_batches must be a whole number from 1 to 1048576, and is 2097152"},
    {plain, steps_text, "config steps must be a number or a flag, and is the text 'many'"},
    {plain, steps_broken,
     "config steps must be a whole number from 0 to 1000000000000000, and is 1.5"},
    {plain, steps_negative,
     "config log_every must be a whole number from 0 to 1000000000000000, and is -1"},
    {plain, shuffle_many, "config shuffle must be a whole number from 0 to 1, and is 7"},
    {plain, epochs_none, "config epochs must be a number from 0 to 1000000000, and is nan"},
    {plain, steps_flag, "config: there is no flag 'n' for 'steps'"},
    {plain, eval_unknown, "config eval must be the name of a data line, in quotes"},
    {plain, accumulate_alone,
     "config accumulate is more than 1, and no function 'accum' adds gradients up"},
    {plain, input_unknown, "no batch fills this input: 'step' has none of that name"},
    {plain, input_type, "a batch fills this input with f32[4], as 'step' has it"},
    {plain, kernel_none, "the node is in a kernel, the function has none"},
    {fused, member_foreign, "kernel 'one' has a member that is not in the function"},
    {fused, member_field, "%a is listed in kernel 'one' and belongs to two"},
    {fused, member_order, "members of kernel 'one' are not in the function's order"},
    {fused, anchor_foreign, "the anchor of kernel 'one' is not a member"},
    {fused, kernel_name, "kernel 'a b' is not a name"},
    {fused, kernel_id, "kernel 'one' has the id 1 at place 0"},
    {fused, kernel_unknown, "%v is in a kernel that the function does not have"},
    {fused, kernel_scattered, "the members of kernel 'two' do not stand together"},
    {fused, folded_used, "input is no conversion that a matmul computes"},
    {fused, folded_other, "operand %a is in no kernel: only matmuls compute conversions"},
    {fused, folded_result, "is in no kernel"},
    {fused, clone_of_other, "kernel 'two' does not compute what kernel 'one' has computed"},
    {fused, clone_of_itself, "kernel 'one' does not compute what kernel 'one' has computed"},
    {fused, kernels_swapped, "operand %v is not computed before kernel 'two'"},
};

// A value in memory of the host.
#define SENT                                                                                       \
  "%x = input : f32[2]\nkernel y loop {\n%y = neg %x : f32[2]\n}\n"                                \
  "kernel s send {\n%h = copy %y : f32[2]\n}\n"

// Rules that a text can break: the parser reports them with the line. Bodies of `step`.
static const struct {
  const char *states, *body, *want;
} texts[] = {
    {"", "%c = const {value=300.0} : u8[]", "E0111]: the value 300 is no u8"},
    {"", "%c = const {value=0.5} : i32[]", "the value 0.5 is no i32"},
    {"", "%c = const {value=nan} : i64[]", "the value nan is no i64"},
    {"state f : u8[] role=flag value=300.5", "",
     "test.ir:3:7: error[E0111]: the value 300.5 of state 'f' is no u8"},
    {"state n : i64[] role=counter value=nan", "", "the value nan of state 'n' is no i64"},
    {"state f : f32[] role=flag", "%c = const {value=1.0} : f32[]\nwrite @f, %c",
     "'f' is a flag: it cannot be written"},
    {"state w : f32[] role=param", "%c = const {value=1.0} : f32[]\nwrite @w, %c\nwrite @w, %c",
     "state 'w' is written twice"},
    {"state w : f32[2] role=param", "%c = const {value=1.0} : f32[]\nwrite @w, %c",
     "state 'w' is f32[2], the value written is f32[]"},
    {"state s : f32[] role=counter", "", "state 's' has the role counter and must be i64[]"},
    {"state s : i32[] role=seed", "", "state 's' has the role seed and must be i64[]"},
    {"state s : f32[2] role=flag", "", "state 's' is a flag and must be a scalar"},
    {"state s : f32[2] role=buffer\nstate t : f32[3] role=buffer as=s", "",
     "state 't' begins as 's', which is no earlier state of its type"},
    {"state __metadata__ : f32[2] role=param", "",
     "test.ir:3:7: error[E0111]: a checkpoint keeps what is no tensor under '__metadata__'"},
    {"data d = csv(\"x\") {label=$l}", "", "data d: there is no flag 'l' for 'label'"},
    {"data d = csv(\"x\")\nconfig eval = \"d\"", "",
     "config eval names data, and no function 'eval' evaluates on them"},
    {"", "%x = input : f32[2]\n}\nfunc eval {\n%x = input : f64[2]",
     "test.ir:8:1: error[E0111]: a batch fills this input with f32[2], as 'step' has it"},
    {"", "%x = input : f32[2]\n}\nfunc init {\n%x = input : f32[2]",
     "test.ir:8:1: error[E0111]: 'init' runs before there is a batch: it has no inputs"},
    {"", "%c = const {value=1.0} : f32[2]\nresult loss loss = %c",
     "result 'loss' must be f32[], and is f32[2]"},
    {"", "%c = const {value=1.0} : f64[]\nresult metric m = %c", "result 'm' must be f32[]"},
    {"", "%c = const {value=1.0} : f32[]\nresult output o = %c\nresult loss o = %c",
     "two results are called 'o'"},
    {"", "%c = const {value=1.0} : f32[]\nresult metric epoch = %c",
     "a result named 'epoch': the name has a meaning of its own in --metrics"},
    {"", "kernel k loop {\n}", "kernel 'k' is empty"},
    {"",
     "}\nfunc b {\n}\nfunc c {\n}\nfunc d {\n}\nfunc e {\n}\nfunc f {\n}\nfunc g {\n}\nfunc h "
     "{\n}\nfunc i {",
     "9 functions; a module has at most 8"},
    {"",
     "%x = input : f32[2]\nkernel k loop {\n%y = neg %x : f32[2]\n}\n"
     "kernel k loop {\n%z = neg %x : f32[2]\n}",
     "two kernels are called 'k'"},
    {"state w : f32[2] role=param",
     "%x = input : f32[2]\nkernel k loop {\n%y = neg %x : f32[2]\nwrite @w, %y\n}",
     "write cannot be in a kernel"},
    {"", "%x = input : f32[2]\nkernel k loop {\n%y = neg %x : f32[2]\n}\n%z = neg %x : f32[2]",
     "neg is in no kernel"},
    {"",
     "%x = input : bf16[2,2]\n%w = input : f32[2,2]\n%c = cast %x : f32[2,2]\nkernel k matmul {\n"
     "%y = matmul %c, %w {ta=false, tb=false} : f32[2,2]\n}",
     "a matmul does not convert operands of bf16 and f32 itself"},
    {"",
     "%x = input : f32[2,2]\n%t = tf32 %x : f32[2,2]\nkernel k matmul {\n"
     "%y = matmul %t, %x {ta=false, tb=false} : f32[2,2]\n}",
     "a matmul computes %t itself only when both operands have few digits"},
    {"",
     "%x = input : bf16[2,4,4]\n%q = cast %x : f32[2,4,4]\n%v = input : f32[2,4,4]\n"
     "kernel y attention {\n%s = matmul %q, %q {ta=false, tb=true} : f32[2,4,4]\n"
     "%e = exp %s : f32[2,4,4]\n%y = matmul %e, %v {ta=false, tb=false} : f32[2,4,4]\n}",
     "the products of kernel 'y' convert some operands themselves, not all"},
    {"", "%x = input : f32[2]\nkernel s send {\n%h = copy %x : f32[2]\n}",
     "kernel 's' is no copy of what a kernel has made"},
    {"", SENT "kernel t send {\n%i = neg %y : f32[2]\n}",
     "kernel 't' is no copy of what a kernel has made"},
    {"", SENT "kernel t send {\n%i = copy %h : f32[2]\n}",
     "a send cannot copy what kernel 's' makes, a send"},
    {"", SENT "kernel t fetch {\n%i = copy %y : f32[2]\n}",
     "a fetch cannot copy what kernel 'y' makes, a loop"},
    {"", SENT "kernel t fetch begin=s {\n%i = copy %h : f32[2]\n}",
     "kernel 't' begins before 's', which must be between 's' and it"},
    {"", SENT "kernel t loop {\n%i = neg %h : f32[2]\n}",
     "operand %h is in memory of the host: only a fetch reads it"},
    {"", SENT "result output h = %h", "the result 'h' is in memory of the host"},
    {"", SENT, "nobody reads what kernel 's' copies"},
    {"", SENT "kernel t fetch {\n%i = copy %h : f32[2]\n}", "nobody reads what kernel 't' copies"},
    {"", SENT "kernel t fetch {\n%i = copy %h : f32[2]\n}\n%v = reshape %i : f32[1,2]",
     "nobody reads what kernel 't' copies"},
    {"", SENT "kernel t loop begin=y {\n%i = neg %y : f32[2]\n}",
     "kernel 't' begins where it stands: it is no send or fetch"},
};

// --- running ------------------------------------------------------------------------------------
static ir_buf said; // every fault, to see at the end which rules spoke

static void run_change(const change *c, size_t at) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, c->base);
  support_verifies(m, "the sound module");
  broken b = {m, m->funcs.at[0], m->funcs.num > 1 ? m->funcs.at[1] : NULL, NULL};
  b.n = b.f->nodes.at;
  c->apply(&b);
  ir_buf out = ir_buf_new(a);
  int faults = ir_verify(m, &out);
  CHECK(faults > 0, "change %zu is not noticed: %s", at, c->want);
  CHECK(strstr(ir_buf_str(&out), c->want), "change %zu: wanted '%s' in\n%s", at, c->want,
        ir_buf_str(&out));
  ir_buf_puts(&said, ir_buf_str(&out));
  ir_arena_free(a);
}

static void run_text(size_t i) {
  ir_arena *a = ir_arena_new();
  const char *why, *text = ir_format(a, "mltc-ir 1\nmodule t\n%s\nfunc step {\n%s\n}\n",
                                     texts[i].states, texts[i].body);
  CHECK(!support_parse(a, text, &why), "text %zu is taken for sound: %s", i, text);
  CHECK(strstr(why, texts[i].want), "text %zu: wanted '%s' in\n%s", i, texts[i].want, why);
  CHECK(strstr(why, "test.ir:"), "text %zu: the fault has no place:\n%s", i, why);
  ir_buf_puts(&said, why);
  ir_arena_free(a);
}

// Sums of sizes that each may be: of states, of values, and of the operands of a concat.
static void check_sums(void) {
  enum { STATES = 1025, VALUES = 1025, OPERANDS = 1 << 15 };
  ir_arena *a = ir_arena_new();
  ir_buf states = ir_buf_new(a), values = ir_buf_new(a), concat = ir_buf_new(a);
  ir_buf_puts(&states, "mltc-ir 1\nmodule t\n");
  for (int i = 0; i < STATES; i++)
    ir_buf_printf(&states, "state s%d : f64[281474976710656] role=param\n", i);
  ir_buf_puts(&values, "mltc-ir 1\nmodule t\nfunc f {\n%x0 = input : f64[281474976710656]\n");
  for (int i = 1; i < VALUES; i++)
    ir_buf_printf(&values, "%%x%d = exp %%x%d : f64[281474976710656]\n", i, i - 1);
  ir_buf_puts(&values, "}\n");
  ir_buf_puts(&concat,
              "mltc-ir 1\nmodule t\nfunc f {\n%x = input : u8[281474976710656]\n%y = concat");
  for (int i = 0; i < OPERANDS; i++)
    ir_buf_puts(&concat, i ? ", %x" : " %x");
  ir_buf_puts(&concat, " {axis=0} : u8[1]\n}\n");
  const struct {
    const ir_buf *text;
    const char *want;
  } sums[] = {{&states, "states take more than 2^61 bytes in all"},
              {&values, "values of function 'f' take more than 2^61 bytes in all"},
              {&concat, "has more than 2^48 elements"}};
  for (int i = 0; i < 3; i++) {
    const char *why = "";
    CHECK(!support_parse(a, ir_buf_str(sums[i].text), &why) && strstr(why, sums[i].want),
          "wanted '%s' in\n%.400s", sums[i].want, why);
    ir_buf_puts(&said, why);
  }
  ir_arena_free(a);
}

// A fault at a node is shown under its line.
static void check_annotation(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_module(a, plain);
  m->funcs.at[0]->nodes.at[Y]->type.dims[0] = 9;
  ir_buf out = ir_buf_new(a);
  ir_verify(m, &out);
  CHECK(strstr(ir_buf_str(&out), "  %y = add %x, %w : f32[9]\n"
                                 "  #^ add gives f32[4], the node says f32[9]\n"),
        "no annotation in\n%s", ir_buf_str(&out));
  CHECK(!strstr(ir_buf_str(&out), "func eval {"), "sound functions are not printed");
  ir_arena_free(a);
}

// --- did every rule speak? -----------------------------------------------------------------------
// The longest stretch of
// a format between conversions.
static void longest_piece(const char *from, const char *to, const char **piece, size_t *len) {
  *len = 0;
  for (const char *p = from; p < to;) {
    const char *stop = p;
    while (stop < to && *stop != '%')
      stop++;
    if ((size_t)(stop - p) > *len) {
      *piece = p;
      *len = (size_t)(stop - p);
    }
    for (p = stop + (stop < to); p < to && stop < to && !strchr("diouxscgzu%", *p);)
      p++;
    p += p < to && *p == 'z' ? 2 : 1;
  }
}

static void check_source(ir_arena *a, const char *path) {
  size_t len;
  const char *text = ir_read_file(a, path, &len);
  if (!CHECK(text, "%s cannot be read: run the test in the source folder", path))
    return;
  int rules = 0;
  for (const char *at = text; (at = strstr(at, "ir_fault_add(")); at++) {
    const char *quote = strchr(at, '"'), *end = quote ? strchr(quote + 1, '"') : NULL;
    const char *semicolon = strchr(at, ';');
    if (!end || !semicolon || quote > semicolon)
      continue; // the definition
    const char *piece = "";
    size_t n = 0;
    longest_piece(quote + 1, end, &piece, &n);
    rules++;
    CHECK(n && strstr(ir_buf_str(&said), ir_strndup(a, piece, n)),
          "no case makes this rule of %s speak: %.*s", path, (int)(end - quote - 1), quote + 1);
  }
  CHECK(rules > 5, "only %d rules found in %s", rules, path);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  said = ir_buf_new(a);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    run_change(&changes[i], i);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    run_text(i);
  check_annotation();
  check_sums();
  check_source(a, "ir/verify.c");
  check_source(a, "ir/verify_kernels.c");
  check_source(a, "ir/verify_trainer.c");
  check_source(a, "ir/verify_transfers.c");
  ir_arena_free(a);
  return support_finish("test_ir_verify");
}
