// test_std_gradients.c: the gradients of every block of frontend/std, in double precision: what a step takes from the
// parameters along a random direction is the slope of the loss, by forward mode (dual numbers) and by finite differences.
//
// A case is the body of a model. Operands are parameters, so that gradients go through blocks that have none of
// their own. A block without a case fails the test: it must be used by a case or by a block that is, or be on the
// list of those that have no gradient.
#include "passes/pass.h"
#include "support_frontend.h"
#include "support_slopes.h"

#include <dirent.h>
#include <string.h>

typedef struct body {
  const char *inputs; // of the model, behind another: one sample of each, which is i or j then
  const char *text;   // ends with y, whatever it is of
} body;

#define P(name, shape) "  param " name ": f32" shape " = normal(1)\n"

static const body bodies[] = {
    // arrays
    {"", P("x", "[3,4]") "  y = clamp(x, -1, 0.5)\n"},
    {", i: i32[1,3]", P("x", "[3,4]") "  y = pick(x, i)\n"},
    {"", P("x", "[3,4]") "  y = variance(x, axis=0) + deviation(x, axis=0, correction=1)\n"},
    {"", P("x", "[3,4]") P("z", "[3,4]") "  y = unit(x) * cosine_similarity(x, z)[:, none]\n"},
    {"", P("x", "[40,2]") "  y = running_sum(x) * running_sum(x, axis=1)\n"},
    {"", P("x", "[3,4]") "  y = flip(x, axis=1) * backwards(x) * roll(x, 1, axis=1)\n"},
    {"", P("a", "[2,40,3]") P("x", "[2,40,3]")
             P("b", "[2,3]") "  y = recurrence(sigmoid(a), x, start=b)\n"},
    {"", P("x", "[3,7]")
             P("z", "[3,7]") "  y = sort(x) * take_along(z, argsort(x, descending=true))\n"},
    // augment
    {"", P("x", "[2,6,5,3]") "  y = random_flip(random_crop(x, padding=1))\n"},
    {"", P("x", "[2,6,5,3]") "  y = cutout(jitter(x, brightness=0.3, contrast=0.2), 2)\n"},
    {"", P("x", "[2,6,5,3]") "  y = normalise(x, [0.1, 0.2, 0.3], [0.5, 0.6, 0.7])\n"},
    // experts
    {"", P("x", "[2,9,4]") "  y, balance, z = experts(x, 4, 5)\n  y = y + balance + z\n"},
    {"", P("x", "[2,9,4]") "  y, balance, z = experts(x, 3, 4, k=1, gated=true)\n"},
    {"", P("x", "[3,7]") "  y = take_along(x, top_k(x, 3)^T)\n"},
    // graphs
    {", i: i32[1,9], j: i32[1,9]",
     P("x", "[4,3]") "  y = gcn_conv(x, i, j, 2) + sage_conv(x, i, j, 2)\n"},
    {", i: i32[1,9], j: i32[1,9]", P("x", "[4,3]") "  y = gat_conv(x, i, j, 2, heads=2)\n"},
    {", i: i32[1,9]",
     P("x", "[9,2]") "  y = segment_mean(x, i, 4) + sum(segment_softmax(x, i, 4) * x)\n"},
    // images
    {"", P("x", "[2,6,5,3]") "  y = conv2d(x, 4, size=3, step=2, padding=1)\n"},
    {"", P("x", "[2,7,7,4]") "  y = conv2d(x, 4, size=3, dilate=2, padding=1, groups=2)\n"},
    {"", P("x", "[2,6,5,3]") "  y = conv2d(x, 3, size=3, groups=3)\n"},
    {"", P("x", "[1,5,5,34]") "  y = conv2d(x, 34, size=2, groups=17)\n"},
    {"",
     P("x", "[2,9,4]") "  y = conv1d(conv1d(x, 3, size=3, causal=true), 2, padding=1, step=2)\n"},
    {"", P("x", "[2,4,3,3]") "  y = conv_transpose2d(x, 2, size=3, step=2, padding=1, more=1)\n"},
    {"", P("x", "[2,4,3,3]") "  y = resize2d(x, 7, 5) + sum(resize_bilinear(x, 7, 5))\n"},
    {"", P("x", "[2,6,6,3]") "  y = max_pool2d(x, 3, step=2, padding=1) * sum(avg_pool2d(x, 2))\n"},
    {"", P("x", "[2,6,6,3]") "  y = avg_pool2d(x, 3, step=2, padding=1)\n"},
    {"", P("x", "[2,8,3]") "  y = max_pool1d(x, 2) + avg_pool1d(x, 2)\n"},
    {"", P("x", "[2,4,3,3]") "  y = upsample2d(pad2d(x, 1), 2) + sum(global_avg_pool(x) ** 2)\n"},
    {"", P("x", "[2,4,3,3]") "  y = batchnorm(x) * f32(iota([2,4,3,3], axis=1) + 1)\n"},
    {"", P("x", "[2,4,3,6]") "  y = groupnorm(x, 3) * f32(iota([2,4,3,6], axis=1) + 1)\n"},
    // losses
    {", i: i32[1,5]",
     P("x", "[5,4]") "  y = cross_entropy(x, i) + cross_entropy(x, i, smoothing=0.1, ignore=2)\n"},
    {", i: i32[1,5]",
     P("x", "[5,4]") "  y = cross_entropy(x, i, weight=[0.5, 1, 2, 0.1], smoothing=0.1)\n"},
    {"",
     P("x", "[5,4]") P("z", "[5,4]") "  y = soft_cross_entropy(x, softmax(z), smoothing=0.1)\n"},
    {", i: bool[1,5]",
     P("x", "[5]") "  y = binary_cross_entropy(x, i, positive=2) + focal(x, i)\n"},
    {", i: bool[1,5,3]", P("x", "[5,3]") "  y = dice(x, i)\n"},
    {", i: i32[1,2,3]", P("x", "[2,8,5]") "  y = ctc(x, i + 1)\n"},
    {"", P("x", "[5,4]") P("z", "[5,4]") "  y = kl_divergence(log_softmax(x), softmax(z))\n"},
    {"",
     P("x", "[5,4]")
         P("z", "[5,4]") "  y = mse(x, z) + l1(x, z) + huber(x, z) + smooth_l1(x, z, beta=0.7)\n"},
    {", i: bool[1,5]", P("x", "[5,4]") P("z", "[5,4]") "  y = contrastive(x, z, i, margin=4)\n"},
    {"", P("x", "[5,4]") P("z", "[5,4]") P("w", "[5,4]") "  y = triplet(x, z, w, margin=4)\n"},
    {", i: i32[1,5]", P("x", "[5,4]") "  y = perplexity(x, i)\n"},
    // nn
    {"", P("x", "[2,3,4]") "  y = lora_linear(linear(x, 3), 5, 2, scale=0.5)\n"},
    {"", P("x", "[3,4]") "  y = layernorm(x) * rmsnorm(x)\n"},
    {", i: i32[1,2,3]", P("x", "[4,3]") "  y = embedding(x, i)\n"},
    {"",
     P("x", "[3,4]") "  y = relu(x) + leaky_relu(x) + elu(x, alpha=0.7) + selu(x) + prelu(x)\n"},
    {"", P("x", "[3,4]") "  y = gelu(x) + gelu_tanh(x) * silu(x) + mish(x)\n"},
    {"", P("x", "[3,4]") "  y = hard_sigmoid(x) + hard_silu(x) + softplus(x) * log_sigmoid(x)\n"},
    {"", P("x", "[3,4]") "  y = softmax(x) * log_softmax(x, axis=0) * sum(log_sum_exp(x))\n"},
    {"", P("x", "[6,5]") "  y = drop_path(dropout(x, 0.3), 0.2)\n"},
    // recommend
    {", i: i32[1,3,4]",
     P("x", "[4,3]") "  y = embedding_bag(x, i) + embedding_bag(x, i, pad=0, mean=true)\n"},
    {"", P("x", "[3,4,2]") "  y = interactions(x)\n"},
    // sequences
    {"", P("x", "[2,5,3]")
             P("g", "[2,4]") "  y, h, c = lstm(x, 4, h=g, c=g)\n  y = y * sum(h) + sum(c)\n"},
    {"", P("x", "[2,5,3]") P("g", "[2,4]") "  y, h = gru(x, 4, h=g)\n  y = y + sum(h)\n"},
    // transformers
    {"", P("q", "[2,4,5,3]") P("k", "[2,2,5,3]")
             P("v", "[2,2,5,2]") "  y = attention(q, repeat_heads(k, 2), repeat_heads(v, 2), "
                                 "causal=true, window=3)\n"},
    {", i: i32[1,2]",
     P("q", "[2,1,4,3]") P("k", "[2,1,5,3]") P("v", "[2,1,5,2]")
         P("b",
           "[1,4,5]") "  y = attention(q, k, v, see=padding_mask(i + 1, 5), bias=b, drop=0.2)\n"},
    {"", P("x", "[2,5,6]") "  q = rope(heads(x, 3))\n  y = merge_heads(attention(q, q, q, "
                           "bias=alibi(5, 5, 3)))\n"},
    {"", P("x", "[2,5,6]") "  q = heads(x + sinusoids(5, 6), 2)\n  y = attention(q, q, q, "
                           "bias=relative_bias(5, 5, 2))\n"},
    {"", P("x", "[2,5,6]") "  y = swiglu(x, 4)\n"},
};
enum { BODIES = sizeof bodies / sizeof *bodies };

// Of numbers without a gradient: integers, masks, counts of what is right; and what a recipe is made of.
static const char *const without[] = {
    "accuracy",    "top_k_accuracy",  "random_rotation", "one_hot",   "not_negative",
    "averages_of", "bias_correction", "adam_step",       "length_of", "straightened",
    "warm",        "check_end",
};

// --- slopes --------------------------------------------------------------------------------------
static void check_slopes(const body *b, uint64_t seed) {
  ir_arena *a = ir_arena_new();
  ir_module *m =
      support_graph(a, ir_format(a,
                                 "model m(s: f32[1,2]%s) {\n%s%s%s"
                                 "  loss mean((y - 0.3) ** 2) + mean(s)\n}\n"
                                 "optim { sgd(1) }\n",
                                 b->inputs, strstr(b->inputs, "i:") ? "  i = i[0]\n" : "",
                                 strstr(b->inputs, "j:") ? "  j = j[0]\n" : "", b->text));
  pass_autodiff(m, diag_new(a));
  support_check_slopes(a, m, seed, b->text);
  ir_arena_free(a);
}

// --- blocks --------------------------------------------------------------------------------------
typedef struct block {
  const char *name, *text;
  bool used;
} block;
typedef IR_VEC(block) blocks;

// What a comment names is not used.
static void drop_comments(char *text) {
  for (char *at = strchr(text, '#'); at; at = strchr(at, '#'))
    for (; *at && *at != '\n'; at++)
      *at = ' ';
}

static void add_blocks(ir_arena *a, blocks *all, const char *text) {
  static const char word[] = "\nblock ";
  for (const char *at = strstr(text, word), *next; at; at = next) {
    const char *name = at + strlen(word);
    next = strstr(name, word);
    size_t length = next ? (size_t)(next - name) : strlen(name);
    block b = {.name = ir_strndup(a, name, strcspn(name, "(")),
               .text = ir_strndup(a, name, length)};
    IR_PUSH(a, *all, b);
  }
}

static blocks find_blocks(ir_arena *a) {
  blocks all = {0};
  DIR *dir = opendir("frontend/std");
  CHECK(dir, "no frontend/std");
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (strstr(e->d_name, ".graph")) {
      size_t length = 0;
      char *text = ir_read_file(a, ir_format(a, "frontend/std/%s", e->d_name), &length);
      if (!CHECK(text, "cannot read %s", e->d_name))
        continue;
      drop_comments(text);
      add_blocks(a, &all, text);
    }
  if (dir)
    closedir(dir);
  return all;
}

static bool calls(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
    if (at[length] == '(' &&
        (at == text || !strchr("abcdefghijklmnopqrstuvwxyz_0123456789", at[-1])))
      return true;
  return false;
}

static void use(blocks *all, const char *text) {
  for (size_t i = 0; i < all->num; i++)
    if (!all->at[i].used && calls(text, all->at[i].name)) {
      all->at[i].used = true;
      use(all, strchr(all->at[i].text, '('));
    }
}

static void check_all_are_used(void) {
  ir_arena *a = ir_arena_new();
  blocks all = find_blocks(a);
  CHECK(all.num > 100, "%zu blocks", all.num);
  for (int i = 0; i < BODIES; i++)
    use(&all, bodies[i].text);
  for (size_t i = 0; i < all.num; i++) {
    bool excepted = false;
    for (size_t j = 0; j < sizeof without / sizeof *without; j++)
      excepted |= !strcmp(without[j], all.at[i].name);
    CHECK(all.at[i].used != excepted,
          excepted ? "%s is used, and listed as without a gradient"
                   : "no case has a gradient through %s",
          all.at[i].name);
  }
  ir_arena_free(a);
}

int main(void) {
  for (int i = 0; i < BODIES; i++)
    check_slopes(&bodies[i], (uint64_t)i + 1);
  check_all_are_used();
  return support_finish("std_gradients");
}
