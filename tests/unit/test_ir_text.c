// test_ir_text.c: the text form. Well-formed modules print as they were read; broken ones give
// errors with a code, a place and help; no bytes whatever make the parser crash.
#include "tests/unit/support_ir.h"

#include <math.h>
#include <string.h>

// Everything that the text form has.
static const char whole[] = "mltc-ir 1\n"
                            "module mlp\n"
                            "\n"
                            "state linear.w : f32[784,128] role=param loc(3:1)\n"
                            "state running : f64[] role=buffer\n"
                            "state frozen : f32[1,1,1,1,1,1,1,8] role=frozen\n"
                            "state m : f32[4] role=moment\n"
                            "state acc : f32[4] role=accum\n"
                            "state step : i64[] role=counter value=3.0\n"
                            "state seed : i64[] role=seed value=1e+15\n"
                            "state lr : f32[] role=flag value=0.1\n"
                            "state zero : f32[] role=flag value=0.0\n"
                            "data train = idx(\"a b.gz\", \"\\\"quoted\\\\\\\".gz\") {lo=0, "
                            "hi=0.9, vocab=\"ch\\nars\\x01\", w=$zero}\n"
                            "data test = csv() loc(9:3)\n"
                            "config steps = 2000\n"
                            "config rate = 0.001\n"
                            "config name = \"\"\n"
                            "config seed = $zero\n"
                            "\n"
                            "func step {\n"
                            "  %image = input : u8[64,28,28] loc(5:11)\n"
                            "  %linear.w = read @linear.w : f32[784,128]\n"
                            "  %x = cast %image : f32[64,28,28]\n"
                            "  %x2 = reshape %x : f32[64,784] loc(6:7)\n"
                            "  %l = matmul %x2, %linear.w {ta=false, tb=false} : f32[64,128]\n"
                            "  %p = pad %l {lo=[0,1], hi=[2,0], value=-inf} : f32[66,129]\n"
                            "  %n = const {value=nan} : f32[]\n"
                            "  %t = const {value=0.30000000000000004} : f64[]\n"
                            "  %c = concat %l, %l {axis=0} : f32[128,128]\n"
                            "  %m = sum %l {axes=[0,1]} : f32[1,1]\n"
                            "  %loss = reshape %m : f32[]\n"
                            "  write @lr2, %loss loc(7:7)\n"
                            "  result loss loss = %loss\n"
                            "  result metric accuracy = %loss\n"
                            "  result output pad = %p\n"
                            "}\n"
                            "\n"
                            "func empty {\n"
                            "}\n";

static void check_same(ir_arena *a, const char *text) {
  const char *why;
  ir_module *m = support_parse(a, text, &why);
  if (CHECK(m, "%s", why))
    CHECK(strcmp(support_text(a, m), text) == 0, "prints as\n%s", support_text(a, m));
}

static void check_whole(ir_arena *a) {
  ir_buf b = ir_buf_new(a);
  const char *flag = strstr(whole, "state lr :"), *use = strstr(whole, "@lr2");
  ir_buf_write(&b, whole, (size_t)(flag - whole));
  ir_buf_puts(&b, "state lr2 : f32[] role=buffer\n");
  ir_buf_puts(&b, flag);
  CHECK(use, "the text has its write");
  check_same(a, ir_buf_str(&b));
}

// Spaces, comments, ends of lines and attribute order are free; what is printed is not.
static void check_free_form(ir_arena *a) {
  ir_module *m = support_module(a, "# a comment\r\n\n mltc-ir   1 # one\nmodule\tt\n"
                                   "func   f{\r\n"
                                   "%x=input:f32[ 2 , 3 ]# x\n"
                                   "\t%y = matmul %x ,%x{tb=true,ta=false}:f32[2,2] loc( 4 : 5 )#\n"
                                   "\n"
                                   "result output y=%y\n}  # end");
  CHECK(strcmp(support_text(a, m), "mltc-ir 1\nmodule t\n\nfunc f {\n"
                                   "  %x = input : f32[2,3]\n"
                                   "  %y = matmul %x, %x {ta=false, tb=true} : f32[2,2] loc(4:5)\n"
                                   "  result output y = %y\n}\n") == 0,
        "prints as\n%s", support_text(a, m));
}

static void check_kernels(ir_arena *a) {
  check_same(a, "mltc-ir 1\nmodule t\n\nfunc step {\n"
                "  %x = input : f32[4,4]\n"
                "  %c = const {value=2.0} : f32[4,4]\n"
                "  kernel relu.3 matmul anchor=%h {\n"
                "    %h = matmul %x, %x {ta=false, tb=false} : f32[4,4]\n"
                "    %r = max %h, %c : f32[4,4]\n"
                "  }\n"
                "  %v = transpose %r {perm=[1,0]} : f32[4,4]\n"
                "  kernel norm loop stores=%s {\n"
                "    %s = sum %v {axes=[1]} : f32[4,1]\n"
                "    %b = broadcast %s : f32[4,4]\n" // a view between members
                "    %d = div %v, %b : f32[4,4]\n"
                "  }\n"
                "  %flat = reshape %d : f32[16]\n"
                "  result output flat = %flat\n"
                "}\n");
}

// --- errors --------------------------------------------------------------------------------------
// A text
// with one error, and what must be said of it.
static const struct {
  const char *text, *want, *help;
} errors[] = {
    {"", "1:1: error[E0101]: this is not an IR file", "begins with the line 'mltc-ir 1'"},
    {"hello", "1:1: error[E0101]", NULL},
    {"mltc-ir 2\nmodule t\n", "version 2 of the IR is not known", NULL},
    {"mltc-ir 1\n", "the second line must be 'module NAME'", NULL},
    {"mltc-ir 1\nfunc f {\n}", "2:1: error[E0101]", NULL},
    {"mltc-ir 1\nmodule t u\n", "2:10: error[E0102]: expected the end of the line, found 'u'",
     NULL},
    {"mltc-ir 1\nmodule t\nstat w : f32[] role=param", "found 'stat'", "did you mean 'state'?"},
    {"S\nstate w : f32[4] role=parm", "3:23: error[E0110]: unknown role 'parm'", "'param'"},
    {"S\nstate w : f32[4]", "E0104]: state 'w' needs a role", "role=param"},
    {"S\nstate w : f32[4] rol=param", "no attribute 'rol'", "'role'"},
    {"S\nstate w : f31[4] role=param", "3:11: error[E0105]: unknown element type 'f31'", "'f32'"},
    {"S\nstate w : f32[4,0] role=param", "f32[4,0] has an empty axis", NULL},
    {"S\nstate w : f32[-1] role=param", "has an empty axis", NULL},
    {"S\nstate w : f32[99999999999999999999] role=param", "whole number of at most 64 bits", NULL},
    {"S\nstate w : f32[9999999999,9999999999] role=param", "more than 2^48 elements", NULL},
    {"S\nstate w : f32[1,1,1,1,1,1,1,1,1] role=param", "rank 9 is too high", NULL},
    {"S\nstate w : f32[] role=flag value=1x", "expected a number, found '1x'", NULL},
    {"S\nstate w : f32[] role=param\nstate w : f32[] role=param", "4:7: error[E0107]", NULL},
    {"S\ndata d = idx(\"a\nconfig b = 1", "text without its closing quote", NULL},
    {"S\ndata d = idx(\"\\q\")", "unknown escape", NULL},
    {"S\ndata d = idx(3)", "expected a text in double quotes, found '3'", NULL},
    {"S\ndata d = idx()\ndata d = idx()", "data 'd' is there twice", NULL},
    {"S\nconfig n = 1\nconfig n = 2", "4:8: error[E0107]: setting 'n' is there twice", NULL},
    {"S\ndata d = idx() {n=1, n=2}", "3:22: error[E0107]: setting 'n' is there twice", NULL},
    {"S\nstate w : f32[] role=param value=1 value=2", "attribute 'value' is there twice", NULL},
    {"S\nconfig x = true", "expected a number, found 'true'", NULL},
    {"S\nfunc f {\n", "3:6: error[E0102]: function 'f' has no closing '}'", NULL},
    {"S\nfunc f {\n}\nfunc f {\n}\n", "function 'f' is there twice", NULL},
    {"F %y = ad %x, %x : f32[4]", "6:6: error[E0103]: unknown operation 'ad'",
     "did you mean 'add'?"},
    {"F %y = sum %x {axs=[0]} : f32[1]", "'sum' has no attribute 'axs'", "'axes'"},
    {"F %y = sum %x {axes=0} : f32[1]", "expected '[', found '0'", NULL},
    {"F %y = sum %x {axes=[0], axes=[0]} : f32[1]", "attribute 'axes' is there twice", NULL},
    {"F %y = sum %x : f32[1]", "E0109]: sum: 'sum' needs the attribute 'axes'", NULL},
    {"F %y = matmul %x, %x {ta=1, tb=false} : f32[1]", "expected true or false, found '1'", NULL},
    {"F %y = neg %z : f32[4]", "6:10: error[E0106]: %z is not defined", NULL},
    {"F %y = neg %xx : f32[4]", "%xx is not defined", "did you mean '%x'?"},
    {"F %y = neg %z : f32[4]\n%z = neg %x : f32[4]", "%z is not defined", "defined in line 7"},
    {"F %y = neg x : f32[4]", "expected ':' and a type, found 'x'", NULL},
    {"F %y = neg % x : f32[4]", "expected a value such as %x", NULL},
    {"F %x = neg %x : f32[4]", "6:1: error[E0107]: %x is defined twice", NULL},
    {"F %y = add %x : f32[4]", "'add' takes 2 operands, not 1", NULL},
    {"F %y = add %x, %x : f32[5]", "6:19: error[E0109]: add gives f32[4], the line says f32[5]",
     NULL},
    {"F %k = const {value=1.0} : f32[5]\n%y = add %x, %k : f32[4]",
     "operands have shapes [4] and [5]", NULL},
    {"F %k = const {value=1.0} : f64[4]\n%y = add %x, %k : f32[4]",
     "operands have element types f32 and f64", NULL},
    {"F %y = read @waight : f32[4]", "E0108]: there is no state 'waight'", "mean 'weight'?"},
    {"F %y = write @weight, %x", "write gives no value", NULL},
    {"F write @weight %x", "expected ',' and the value, found '%x'", NULL},
    {"F result los l = %x", "unknown kind of result 'los'", "'loss'"},
    {"F kernel k lop {\n}", "unknown kernel family 'lop'", "'loop'"},
    {"F kernel k loop anchor=%x {\n%y = neg %x : f32[4]\n}", "%x is not in kernel 'k'", NULL},
    {"F kernel k loop stores=%x {\n%y = neg %x : f32[4]\n}",
     "the stored value %x is not in kernel 'k'", NULL},
    {"F kernel k loop stores=%y stores= {\n%y = neg %x : f32[4]\n}",
     "expected a value such as %y, found '{'", NULL},
    {"F kernel k loop {\nkernel l loop {\n}\n}", "a kernel inside of kernel 'k'", NULL},
    {"F %y = neg %x : f32[4] \xff", "found the byte 0xff", NULL},
    {"F yield %x", "expected a value, write, kernel, result or '}', found 'yield'", NULL},
};

// "S" stands for the first two lines, "F" for five lines up to an input %x : f32[4] in a function.
static const char *expand(ir_arena *a, const char *text) {
  if (*text == 'S')
    return ir_format(a, "mltc-ir 1\nmodule t%s", text + 1);
  if (*text == 'F')
    return ir_format(a,
                     "mltc-ir 1\nmodule t\nstate weight : f32[4] role=param\nfunc f {\n"
                     "%%x = input : f32[4]\n%s\n}\n",
                     text + 2);
  return text;
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, word)); at++)
    n++;
  return n;
}

static void check_errors(void) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    ir_arena *a = ir_arena_new();
    const char *why, *text = expand(a, errors[i].text);
    CHECK(!support_parse(a, text, &why), "text %zu is taken for sound: %s", i, text);
    CHECK(strstr(why, errors[i].want), "text %zu: wanted '%s' in\n%s", i, errors[i].want, why);
    const char *help = errors[i].help ? errors[i].help : "";
    CHECK(strstr(why, help), "text %zu: wanted help '%s' in\n%s", i, help, why);
    ir_arena_free(a);
  }
}

// One run shows all errors, and none that only follows from another.
static void check_several(ir_arena *a) {
  const char *why;
  support_parse(a,
                "mltc-ir 1\nmodule t\n"
                "state w : f32[4] role=parm\n"
                "func f {\n"
                "  %x = input : f32[4]\n"
                "  %a = ngg %x : f32[4]\n"            // error
                "  %b = neg %a : f32[4]\n"            // follows
                "  %c = add %b, %a : f32[4]\n"        // follows
                "  %d = sum %x {axes=[3]} : f32[1]\n" // error
                "  write @q, %c\n"                    // error
                "  result loss l = %d\n"              // follows
                "}\n"
                "func g {\n" // error: not closed
                "  %x = input : f32[4]\n"
                "func h {\n"
                "  %y = input : q8[]\n" // error
                "}\n",
                &why);
  CHECK(count(why, "error[") == 6, "%d errors in\n%s", count(why, "error["), why);
  static const char *const lines[] = {
      "test.ir:3:", "test.ir:6:", "test.ir:9:", "test.ir:10:", "test.ir:13:", "test.ir:16:"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    CHECK(strstr(why, lines[i]), "no error at %s\n%s", lines[i], why);
}

// --- any bytes -----------------------------------------------------------------------------------
static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static void mutate(char *text, size_t *len, uint64_t *state) {
  static const char spice[] = "%@{}[](),:=\"\\#\n 0-9eE.x\xff";
  for (int n = next(state) % 2 ? 1 : 3; n > 0; n--) {
    size_t at = next(state) % *len, to = next(state) % *len, size = next(state) % 24;
    if (to + size > *len || at + size > *len)
      continue;
    switch (next(state) % 4) {
    case 0:
      text[at] = spice[next(state) % (sizeof spice)]; // the NUL too
      break;
    case 1:
      memmove(text + at, text + to, size);
      break;
    case 2:
      memmove(text + at, text + at + size, *len - at - size);
      *len -= size;
      break;
    default:
      *len = *len > 60 ? *len - next(state) % 30 : *len;
    }
  }
  text[*len] = 0;
}

// Either errors, or a sound module that prints and reads back.
static void check_mutant(ir_arena *a, const char *text, size_t len, int *sound) {
  ir_source src = {"mutant.ir", text, len};
  ir_diags *d = diag_new(a);
  ir_module *m = ir_parse(a, &src, d);
  CHECK((m != NULL) == (diag_num_errors(d) == 0), "NULL exactly when there are errors");
  if (!m)
    return;
  ++*sound;
  if (support_verifies(m, "mutant"))
    check_same(a, support_text(a, m));
}

static void check_any_bytes(void) {
  int sound = 0, all = 4000;
  for (int i = 0; i < all; i++) {
    ir_arena *a = ir_arena_new();
    uint64_t state = (uint64_t)i + 99;
    const char *base = whole;
    if (i % 2) {
      ir_random_options o = {.seed = (uint64_t)i % 16, .num_nodes = 20, .networks = i % 4 == 1};
      base = support_text(a, ir_random_module(a, o));
    }
    size_t len = strlen(base);
    char *text = ir_strdup(a, base);
    mutate(text, &len, &state);
    check_mutant(a, text, len, &sound);
    ir_arena_free(a);
  }
  CHECK(sound > all / 200 && sound < all * 9 / 10, "%d of %d mutants are sound", sound, all);
}

// Numbers come back bit for bit.
static void check_numbers(ir_arena *a) {
  static const double values[] = {0.1, 1e308, 5e-324, -0.0, 3, 1.0 / 3, 123456789.125, INFINITY};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    ir_module *m = ir_module_new(a, "t");
    ir_builder b = ir_build_at_end(ir_func_new(m, "f"));
    ir_const(&b, ir_scalar(IR_F64), values[i]);
    ir_module *again = support_module(a, support_text(a, m));
    double got = ir_attr_num(again->funcs.at[0]->nodes.at[0], IR_ATTR_VALUE);
    CHECK(memcmp(&got, &values[i], sizeof got) == 0, "%a came back as %a", values[i], got);
  }
}

// The reference names every op, attribute, element type, role, family and code.
static void check_docs(ir_arena *a) {
  size_t len;
  const char *text = ir_read_file(a, "docs/ir.md", &len);
  if (!CHECK(text, "docs/ir.md cannot be read: run the test in the source folder"))
    return;
  for (int i = 0; i < IR_NUM_OPS; i++)
    CHECK(strstr(text, ir_format(a, "`%s`", ir_ops[i].name)), "no op '%s'", ir_ops[i].name);
  for (int i = 0; i < IR_NUM_ATTRS; i++)
    CHECK(strstr(text, ir_format(a, "`%s`", ir_attr_infos[i].name)), "no attribute '%s'",
          ir_attr_infos[i].name);
  for (int i = 0; i < IR_NUM_DTYPES; i++)
    CHECK(strstr(text, ir_format(a, "`%s`", ir_dtypes[i].name)), "no type '%s'", ir_dtypes[i].name);
  for (int i = 0; i < IR_NUM_ROLES; i++)
    CHECK(strstr(text, ir_format(a, "`%s`", ir_role_names[i])), "no role '%s'", ir_role_names[i]);
  for (int i = 0; i < IR_NUM_FAMILIES; i++)
    CHECK(strstr(text, ir_format(a, "`%s`", ir_family_names[i])), "no family '%s'",
          ir_family_names[i]);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  check_whole(a);
  check_free_form(a);
  check_kernels(a);
  check_errors();
  check_several(a);
  check_any_bytes();
  check_numbers(a);
  check_docs(a);
  ir_arena_free(a);
  return support_finish("test_ir_text");
}
