// elsewhere.c: what functions, types and values of other tools are called here. A person who ports a network knows it by their names,
// which no spelling brings near ours.
#include "frontend/check.h"

#include <string.h>

static const struct {
  const char *theirs, *ours; // PyTorch's, numpy's or Keras's name; how it is written here
} names[] = {
    {"arange", "iota(n)"},
    {"bmm", "x @ y"},
    {"cat", "concat([x, y], axis=0)"},
    {"ceil", "-floor(-x)"},
    {"chunk", "split(x, parts, axis)"},
    {"clip", "clamp(x, lo, hi)"},
    {"concatenate", "concat([x, y], axis=0)"},
    {"cumsum", "running_sum(x, axis)"},
    {"dense", "linear(x, m)"},
    {"detach", "stop(x)"},
    {"einsum", "x @ y, of what reshape and transpose have put in order"},
    {"expand", "broadcast(x, shape)"},
    {"expand_dims", "x[:, none]"},
    {"flatten", "reshape(x, shape)"},
    {"fliplr", "flip(x, axis=1)"},
    {"floor_divide", "x // y"},
    {"fmod", "x % y, which has the sign of y"},
    {"full", "constant(value, shape)"},
    {"index_add", "segment_sum(values, index, n)"},
    {"index_select", "gather(x, index)"},
    {"len", "shape(x)[0]"},
    {"logaddexp", "log_sum_exp(stack([x, y]), axis=0)"},
    {"logsumexp", "log_sum_exp(x, axis)"},
    {"masked_fill", "where(mask, value, x)"},
    {"matmul", "x @ y"},
    {"maximum", "max(x, y)"},
    {"minimum", "min(x, y)"},
    {"mm", "x @ y"},
    {"mod", "x % y"},
    {"norm", "sqrt(sum(x * x, axis))"},
    {"normalize", "unit(x)"},
    {"not_equal", "x != y"},
    {"ones_like", "ones(shape(x))"},
    {"outer", "x[:, none] * y[none, :]"},
    {"permute", "transpose(x, axes)"},
    {"pow", "x ** y"},
    {"prod", "exp(sum(log(x), axis)), of what is above 0"},
    {"rand", "uniform(shape)"},
    {"randn", "normal(shape)"},
    {"remainder", "x % y"},
    {"roll", "concat([x[n:], x[:n]], axis=0)"},
    {"round", "floor(x + 0.5)"},
    {"scatter", "segment_sum(values, index, n)"},
    {"scatter_add", "segment_sum(values, index, n)"},
    {"square", "x ** 2"},
    {"squeeze", "reshape(x, shape)"},
    {"std", "deviation(x, axis)"},
    {"swish", "silu(x)"},
    {"tan", "sin(x) / cos(x)"},
    {"tril", "where(iota(shape, axis=1) <= iota(shape, axis=0), x, 0)"},
    {"triu", "where(iota(shape, axis=1) >= iota(shape, axis=0), x, 0)"},
    {"unfold", "windows(x, size, axis)"},
    {"unsqueeze", "x[:, none]"},
    {"var", "variance(x, axis)"},
    {"view", "reshape(x, shape)"},
    {"zeros_like", "zeros(shape(x))"},
};

const char *fe_name_here(const char *theirs) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i].theirs, theirs) == 0)
      return names[i].ours;
  return NULL;
}

// What is no function, or is one as all element types are.
static const struct {
  const char *theirs, *ours;
} words[] = {
    {"False", "false"}, {"None", "none"}, {"True", "true"},   {"bfloat16", "bf16"},
    {"double", "f64"},  {"float", "f32"}, {"float16", "f16"}, {"float32", "f32"},
    {"float64", "f64"}, {"half", "f16"},  {"int", "i32"},     {"int32", "i32"},
    {"int64", "i64"},   {"int8", "i8"},   {"long", "i64"},    {"uint16", "u16"},
    {"uint32", "u32"},  {"uint8", "u8"},
};

const char *fe_word_here(const char *theirs) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i].theirs, theirs) == 0)
      return words[i].ours;
  return NULL;
}
