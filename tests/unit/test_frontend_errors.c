// test_frontend_errors.c: every kind of error that a graph file can have: its code, its place and
// the words that help. The place is marked in the text: the error must start at «.
#include "support_frontend.h"

#include <string.h>

typedef struct error_case {
  const char *code;
  const char *text;  // « marks the place
  const char *words; // must be in the message, label, notes or help
} error_case;

#define MODEL(body)                                                                                \
  "model m(x: f32[4,6], y: i32[4]) {\n" body "\nloss mean(linear(x, 1))\n}\noptim { sgd(0.1) }\n"
#define REST    "model m(x: f32[4,6]) { loss mean(linear(x, 1)) }\noptim { sgd(0.1) }\n"
#define NO_REST "model m(x: f32[4,6]) { loss mean(linear(x, 1)) }\n"

#define IMAGE(call) MODEL("i = reshape(concat([x, x, x, x], axis=0), [1, 4, 8, 3])\na = " call)

static const error_case cases[] = {
    // reading
    {"E0001", "let a = 1 «$ 2\n" REST, "'$'"},
    {"E0001", "let a = b«. * 2\n" REST, "no methods"},
    {"E0001", "let a = 1«\u00a0+ 2\n" REST, "it is a no-break space: write a space"},
    {"E0001", "let a = 2 «\u2192 3\n" NO_REST, "0xe2"},
    {"E0001", "let a = \"b«\\d\"\n" REST, "which is the backslash itself"},
    {"E0002", "let a = «12ab\n" REST, "digit"},
    {"E0002", "let a = «99999999999999999999\n" REST, "64 bits"},
    {"E0002", "let a = «9e999\n" REST, "too large"},
    {"E0002", "let a = 0.000e-999 + «0.01e-400\n" REST, "too small: it would be 0"},
    {"E0003", "import «\"abc\n" REST, "quote"},
    {"E0004", "let a «3\n" REST, "expected '='"},
    {"E0004", "«modell m(x: f32[4]) { }\n" REST, "did you mean 'model'?"},
    {"E0004", MODEL("a = linear(x «10)"), "expected ',' or ')'"},
    {"E0004", MODEL("a = x«^2"), "a ** b"},
    {"E0004", MODEL("a = 1 < 2 «< 3"), "a < b and b < c"},
    {"E0004", MODEL("a = (1, 2«"), "expected ',' or ')'"},
    {"E0004", MODEL("a = [«)"), "expected an expression"},
    {"E0004", MODEL("los «mean(x)"), "did you mean 'loss'?"},
    {"E0004", MODEL("metric a«(x)"), "metric a = a(...)"},
    {"E0004", MODEL("output a«(x)"), "output a = a(...)"},
    {"E0004", MODEL("loss b = mean(x)«"), "one alone has no name"},
    {"E0004", MODEL("loss mean(x) «over y"), "has a name"},
    {"E0004", MODEL("for «i in 3 { }"), "repeat i in 3"},
    {"E0004", MODEL("«let q = 3"), "here write q = ..."},
    {"E0004", MODEL("def «f(x) { }"), "block name("},
    {"E0004", MODEL("«as = x"), "'as' is a word of the language"},
    {"E0004", MODEL("a = x * «in"), "'in' is a word of the language"},
    {"E0004", MODEL("param «in: f32[4] = zeros"), "'in' is a word of the language"},
    {"E0004", MODEL("parm «w: f[3] = zeros"), "did you mean 'param'?"},
    {"E0004", "model m(x: f32[4,6]) { loss mean(linear(x, 1)) }\noptim «= sgd(0.1)\n", "optim {"},
    {"E0006", "import «\"no/such/file.graph\"\n" REST, "-I"},
    // names
    {"E0201", MODEL("z = relu(«h)\nh = x"), "from here on"},
    {"E0201", MODEL("repeat 2 { z = relu(«h)\nh = x }"), "from here on"},
    {"E0202", MODEL("s = split(x, 2, axis=1)\nz = relu(«s)"), "`a, b = ...`"},
    {"E0201", MODEL("size = 3\n a = x * «sise"), "did you mean 'size'?"},
    {"E0201", MODEL("a = «linaer(x, 3)"), "did you mean 'linear'?"},
    {"E0201", MODEL("a = «exb(x)"), "did you mean 'exp'?"},
    {"E0201", MODEL("param w: «f23[4] = zeros"), "did you mean 'f32'?"},
    {"E0201", MODEL("a = «len(x)"), "shape(x)[0]"},
    {"E0201", MODEL("a = «float32(y)"), "here it is written f32(x)"},
    {"E0201", MODEL("param w: «float32[4] = zeros"), "here it is written f32\n"},
    {"E0201", MODEL("a = linear(x, 3, bias=«True)"), "here it is written true"},
    {"E0004", MODEL("«// a comment"), "begins with #"},
    {"E0004", MODEL("a = x // the «square"), "begins with #"},
    {"E0004", "«// a model\n" REST, "begins with #"},
    {"E0004", "let a = 2 // the «half\n" REST, "begins with #"},
    {"E0004", REST "train {\nepochs = 2 // two «of them\n}\n", "begins with #"},
    {"E0004", MODEL("x +«= 1"), "write x = x + ..."},
    {"E0004", MODEL("x //«= 2"), "write x = x // ..."},
    {"E0205", MODEL("a = concat(x, x, «axis=1)"), "concat([x, y], axis=...)"},
    {"E0202", MODEL("a = stack(«x, 0)"), "stack([x, y], axis=0)"},
    {"E0201", MODEL("a = «cumsum(x)"), "running_sum(x, axis)"},
    {"E0201", MODEL("a = «cat([x, x])"), "concat([x, y], axis=0)"},
    {"E0202", MODEL("a = «relu + 1"), "call it"},
    {"E0206", "let a = 1\nlet «a = 2\n" REST, "first one is here"},
    {"E0206", "flag «seed = 1\n" REST, "meaning of its own"},
    {"E0206", MODEL("«training = false"), "meaning of its own"},
    {"E0206", MODEL("a, «pi = split(x, 2, axis=1)"), "meaning of its own"},
    {"E0206", MODEL("repeat «step in 3 { }"), "meaning of its own"},
    {"E0206", "block b(x) {\n«none = x\nreturn x }\n" MODEL("a = b(x)"), "meaning of its own"},
    {"E0206", MODEL("param «__metadata__: f[2] = zeros"), "meaning of its own in checkpoints"},
    {"E0206", MODEL("metric «eval = mean(x)"), "meaning of its own"},
    {"E0206", MODEL("metric a = mean(x)\nmetric «a = mean(x)"), "already a result"},
    {"E0206", MODEL("param w: f[2] = zeros\nparam «w: f[2] = zeros"), "first one is here"},
    {"E0206", "block a(x) { return x }\nblock «a(x) { return x }\n" REST, "first one is here"},
    {"E0206", "block a(x, «x) { return x }\n" REST, "first one is here"},
    // kinds of values
    {"E0202", MODEL("a = exp(«\"three\")"), "the text \"three\""},
    {"E0202", MODEL("a = x «+ \"three\""), "cannot combine"},
    {"E0207", MODEL("repeat «x { }"), "compile time"},
    {"E0207", MODEL("if «x > 0 { }"), "compile time"},
    {"E0207", MODEL("a = 1 if «x > 0 else 2"), "where("},
    {"E0207", MODEL("a = x[«y]"), "gather"},
    {"E0212", "flag n = 4\n" MODEL("a = zeros(«[n])"), ""},
    {"E0212", "flag n = 4\n" MODEL("a = «linear(x, n)"), "mltc -D n="},
    {"E0212", "flag n = 4\nlet k = «n + 1\n" REST, "trainer"},
    {"E0214", MODEL("a, b = «split(x, 3, axis=1)"), "2 names for 3 values"},
    {"E0214", MODEL("a, b = «x"), "split(x, 2, axis)"},
    {"E0222", MODEL("a = linear(x, 2) as p\nb = parameter(«\"p.v\")"), "did you mean 'p.w'?"},
    {"E0222", MODEL("a = parameter(«\"linear.w\")"), "used above"},
    {"E0222", MODEL("a = «tanh(linear(x, 2)) as p"), "right behind the call of the block"},
    {"E0222", MODEL("a = relu(linear(x, 2)) as p\nloss b = mean(a) over «p"), "the use of 'relu'"},
    {"E0202", MODEL("a = parameter(«x)"), "a text"},
    {"E0218", MODEL("param w: f[3] = «x"), "normal(std)"},
    {"E0218", MODEL("param w: f[3] = normal(«-1)"), "the deviation of normal() is -1"},
    {"E0218", MODEL("param w: f[3] = uniform(«2, 1)"), "from 2 to 1"},
    {"E0218", MODEL("param w: f[3] = uniform(«-0.5)"), "from 0.5 to -0.5"},
    {"E0223", MODEL("param w: f[3] = «truncated_normal(-1)"), "the std of truncated_normal is -1"},
    {"E0219", MODEL("«relu(x)"), "assign it"},
    // what blocks refuse
    {"E0223", "block b(n) { «error \"it is \", n / 2, \" of \", n }\n" MODEL("a = b(9)"),
     "it is 4.5 of 9"},
    {"E0223", MODEL("«error \"a model \", x"), "a model a tensor f32[4, 6]"},
    {"E0201", MODEL("error \"a\", «nothing"), "nothing"},
    {"E0223", MODEL("a, b, d = «experts(x, 4, 8, k=5)"), "k = 5 of n = 4"},
    {"E0223", MODEL("a, b, d = «experts(x, 4, 8, k=0)"), "k = 0 of n = 4"},
    {"E0223", MODEL("a, b, d = «experts(x, 0, 8)"), "n = 0"},
    {"E0223", MODEL("a, b, d = «experts(x, 4, 8, capacity=0)"), "the capacity is 0;"},
    {"E0223", MODEL("a, b, d = «experts(x, 4, 8, capacity=-0.5)"), "the capacity is -0.5;"},
    {"E0223", MODEL("a = «top_k(x, 7)"), "k is 7, and there are 6"},
    {"E0223", MODEL("a = «dropout(x, 1.5)"), "p is 1.5; a part lies between 0 and 1"},
    {"E0223", MODEL("a = «dropout(x, -0.1)"), "p is -0.1"},
    {"E0223", MODEL("a = «drop_path(x, 2)"), "p is 2"},
    {"E0223", MODEL("a = «cutout(reshape(x, [1, 2, 2, 6]), 0)"), "0 places"},
    {"E0223", MODEL("a = «ctc(reshape(x, [4, 1, 6]), reshape(y, [4, 1]), blank=6)"), "there are 6"},
    {"E0223", MODEL("a = «resize_bilinear(reshape(x, [1, 2, 2, 6]), 2, 0)"), "2 by 0"},
    {"E0223", MODEL("a = «cross_entropy(x, y, weight=2)"), "a list has a number for each"},
    {"E0223", MODEL("a = «cross_entropy(x, y, weight=[1, 2])"), "2 weights for 6 classes"},
    {"E0223", MODEL("a = «argsort(x, axis=2)"), "no axis 2"},
    {"E0223", MODEL("a = «roll(x, 1, axis=2)"), "no axis 2"},
    {"E0223", MODEL("a = «recurrence(x, x, axis=2)"), "no axis 2"},
    {"E0208", MODEL("a = recurrence(x, «x[0:1])"), "[1, 6] in 'x'"},
    {"E0223",
     "flag k = 5\nblock b(v, p) { if not is_number(p) { «error \"a flag\" }\nreturn v }\n" MODEL(
         "a = b(dropout(x, k), 0.5)\nc = b(x, k)"),
     "a flag"},
    {"E0223", MODEL("a = «cross_entropy(x, y, smoothing=2)"), "smoothing is 2"},
    {"E0223", IMAGE("«avg_pool2d(i, 3, padding=2)"),
     "a padding of 2 for avg_pool2d, and windows of 3"},
    {"E0223", IMAGE("«avg_pool2d(i, [3,2], padding=[1,2])"),
     "a padding of 2 for avg_pool2d, and windows of 2"},
    {"E0223", IMAGE("«max_pool2d(i, 3, padding=2)"), "half of the size is the most"},
    {"E0223", IMAGE("«max_pool2d(i, 3, padding=-1)"), "a padding of -1 for max_pool2d"},
    {"E0223", IMAGE("«avg_pool1d(i[0], 3, padding=2)"), "for avg_pool1d"},
    {"E0223", IMAGE("«max_pool1d(i[0], 3, padding=2)"), "for max_pool1d"},
    {"E0207", MODEL("w = x * x\na = reshape(x, «[4, w, 6])"),
     "entry 2 of a shape must be a whole number"},
    {"E0203", MODEL("a = «iota(2147483649)"), "counts to 2147483648, and i32 ends at 2147483647"},
    {"E0202", MODEL("a = convert(«3, x)"), "its shape may be []"},
    {"E0202", MODEL("a = convert(x, «\"a\")"), "must be a tensor"},
    {"E0204", MODEL("a = f64(x) «+ x"), "with f64(...) or f32(...)"},
    {"E0203", MODEL("a = windows(x, «0, axis=1)"), "this is 0"},
    {"E0220", MODEL("a = x[«::-1]"), "this is -1"},
    {"E0220", MODEL("a = x[«::-1]"), "flip(x, axis)"},
    {"E0201", MODEL("a = «logaddexp(x, x)"), "log_sum_exp(stack"},
    {"E0223", MODEL("a = «soft_cross_entropy(x, x, smoothing=-1)"), "smoothing is -1"},
    {"E0223", MODEL("a = «clamp(x, 2, 1)"), "lo is 2 and hi is 1"},
    {"E0223", MODEL("a = «variance(x[0:1], axis=0, correction=1)"), "of 1 elements"},
    {"E0223", MODEL("a = «flip(x, axis=9)"), "no axis 9"},
    {"E0223", MODEL("a = «running_sum(x, axis=-9)"), "no axis -9"},
    {"E0223", MODEL("a = «conv1d(reshape(x, [1, -1, 1]), 3, groups=2)"), "1 and 3 channels"},
    {"E0223", MODEL("a = «conv1d(reshape(x, [1, -1, 1]), 3, causal=true, padding=1)"),
     "causal says"},
    {"E0223", MODEL("a = «huber(x, x, delta=0)"), "delta is 0"},
    {"E0223", MODEL("a = «smooth_l1(x, x, beta=0)"), "l1"},
    {"E0223", MODEL("a = «top_k_accuracy(x, y, 7)"), "k is 7, and there are 6 classes"},
    {"E0223", MODEL("a = «heads(reshape(x, [2, 2, 6]), 4)"), "6 numbers do not go into 4"},
    {"E0223", MODEL("a = «attention(x, x, x, window=0)"), "a window of 0"},
    {"E0223", MODEL("a = «sinusoids(4, 5)"), "there are 5"},
    {"E0223", MODEL("a = «conv2d(reshape(x, [1, 2, 2, 6]), 8, groups=3)"), "6 and 8 channels"},
    {"E0223", MODEL("a = «groupnorm(reshape(x, [1, 2, 2, 6]), 4)"), "6 channels"},
    {"E0223", MODEL("a = «max_pool2d(reshape(x, [1, 2, 2, 6]), 2, padding=2)"), "half"},
    {"E0223", MODEL("a = «random_crop(reshape(x, [1, 2, 2, 6]), size=4)"), "4 by 4 of 2 by 2"},
    {"E0223", MODEL("a = «random_crop(reshape(x, [1, 2, 2, 6]), padding=-1)"), "of -1"},
    {"E0223", MODEL("a = «max_pool1d(reshape(x, [1, 4, 6]), 2, padding=2)"), "max_pool1d"},
    {"E0223", MODEL("a = «conv_transpose2d(reshape(x, [1, 2, 2, 6]), 3, padding=-1)"), "is -1"},
    {"E0223", MODEL("a = «conv_transpose2d(reshape(x, [1, 2, 2, 6]), 3, more=-2)"), "is -2"},
    {"E0223", MODEL("a = «resize2d(reshape(x, [1, 2, 2, 6]), -1, 2)"), "-1 by 2"},
    {"E0223", MODEL("a = «relative_bias(4, 4, 2, far=0)"), "far is 0"},
    {"E0223", MODEL("a = «interactions(reshape(x, [4, 1, 6]))"), "there is one"},
    {"E0223", MODEL("a = «top_k_accuracy(x, y, 2.5)"), "k is 2.5"},
    {"E0223", MODEL("a = «normalise(x, 0, 0)"), "a deviation of 0"},
    {"E0223", MODEL("a = «normalise(x, 0, [1, 1, 1, 0, 1, 1])"), "a deviation of 0"},
    {"E0223", MODEL("a = «normalise(x, [1, 2, 3, 4, 5, 6, 7], 1)"), "7 numbers for 6 channels"},
    {"E0223", MODEL("a = «normalise(x, 0, [1, 2])"), "2 numbers for 6 channels"},
    {"E0223", MODEL("a = «random_flip(reshape(x, [1, 2, 2, 6]), p=2)"), "p is 2"},
    // shapes
    {"E0202", MODEL("a = zeros(«[3 * 0.1 * 10])"), "3.0000000000000004"},
    {"E0202", MODEL("a = «linear(x, 2.5)"), "the number 2.5"},
    {"E0203", MODEL("a = x «+ zeros([5])"), "f32[4, 6]"},
    {"E0203", MODEL("a = «max(x > 0)"), "'max' does not fit"},
    {"E0203", MODEL("metric a = «max(y)"), "convert it with f32"},
    {"E0203", MODEL("metric a = «x"), "make one number"},
    {"E0201",
     "model m(x: f32[4,6]) { loss mean(linear(x, 2)) }\n"
     "optim { adam(0.1 if «rank > 1 else 0.2)\nschedule = cosine(total=9) }\n",
     "one number for all parameters"},
    {"E0201",
     "model m(x: f32[4,6]) { loss mean(linear(x, 2)) }\noptim { sgd(0.1)\nclip = «name }\n",
     "one number for all parameters"},
    {"E0203", MODEL("a = x «@ x"), "6 columns meet 4 rows"},
    {"E0203", MODEL("a = reshape(x, «[5, -1])"), "24 elements"},
    {"E0203", MODEL("a = «x[0]^T"), "2 dimensions"},
    {"E0203", MODEL("a = split(x, «4, axis=1)"), "4 equal parts"},
    {"E0203", MODEL("a, b = split(x, «[0, 6], axis=1)"), "a part of size 0; each has 1 or more"},
    {"E0203", MODEL("a, b = split(x, «[2, 5], axis=1)"), "the parts do not add up to 6"},
    {"E0203",
     "let B = 4, C = 5\nmodel m(x: f32[B,C]) { param w: f[B] = ones\n"
     "loss mean(x «+ w) }\noptim { sgd(0.1) }\n",
     "dimension C is 5 here but 4 there"},
    {"E0208",
     "block add(u: f[b,c], v: f[b,c]) -> f[b,c] { return u + v }\n" MODEL("a = add(x, «x[:, 1:])"),
     "dimension c is 6 in 'u' but 5 in 'v'"},
    {"E0208", "block t(u: f[b,...], v: f[...]) { return u }\n" MODEL("a = t(x, «x)"),
     "'...' are [6] in 'u' but [4, 6] in 'v'"},
    {"E0208", "block t(u: f[b-1, b]) { return u }\n" MODEL("a = t(«x)"),
     "a dimension of 'u' must be 5, not 4"},
    {"E0208", "block t(u: f[b,c]) -> f[c,b] { return «u }\n" MODEL("a = t(x)"),
     "in block 't', used here"},
    {"E0208", "model m(x: f32[4,6], «y: i32[3]) { loss mean(x) }\noptim { sgd(0.1) }\n", "batch"},
    {"E0213", MODEL("a = sum(x, axis=«2)"), "2 dimensions"},
    {"E0213", MODEL("a = sum(x, axis=«[0, -2])"), "twice"},
    {"E0213", MODEL("a = transpose(x, «[0, 0])"), "each axis"},
    {"E0220", MODEL("a = x[:, «6]"), "dimension of 6"},
    {"E0220", MODEL("a = x[:, «3:3]"), "empty"},
    {"E0220", MODEL("a = x[:, 2:«7]"), "slice bound 7 of a dimension of 6"},
    {"E0220", MODEL("a = x[:, «-7:]"), "slice bound -7 of a dimension of 6"},
    {"E0210", MODEL("a = [x]\nrepeat 100000 { a = a «+ a }"), "statements"},
    {"E0220", MODEL("a = «x[0, 0, 0]"), "too many"},
    {"E0220", MODEL("a = «x[0, none, 0, none, 0]"), "too many"},
    {"E0220", MODEL("a = «x[none, none, none, none, none, none, none, none]"), "more than 8 axes"},
    {"E0202", MODEL("a = stack(«x)"), "a list of tensors"},
    {"E0203", MODEL("a = stack(«[x, x[:, 1:]])"), "one shape"},
    {"E0220", MODEL("w = x[..., none, none, none, none, none, none]\na = stack(«[w, w])"),
     "more than 8 axes"},
    {"E0213", MODEL("a = stack([x, x], axis=«3)"), "axis"},
    // element types
    {"E0204", MODEL("a = i64(y) «+ y"), "convert one of them, for example i32(...)"},
    {"E0204", "block t(u: f[...]) { return u }\n" MODEL("a = t(«y)"), "element type f32 or f64"},
    {"E0204", MODEL("a = y «* 0.5 * x"), "f32(...)"},
    {"E0204", MODEL("a = u8(y) «- 300"), "does not fit"},
    {"E0204", MODEL("a = i64(y) «+ 9007199254740993"), "whole numbers from"},
    {"E0204", MODEL("a = i64(y) «+ 9223372036854775807"), "9007199254740992"},
    {"E0204", MODEL("a = x «* 1e39"), "constants of f32"},
    {"E0204", MODEL("param w: f32[3] = «uniform(1e39)"), "constants of f32"},
    {"E0204", MODEL("param w: f32[3] = «uniform(-3e38, 3e38)"), "6e+38 does not fit"},
    {"E0204", MODEL("param w: f32[3] = «normal(1e39)"), "constants of f32"},
    {"E0204", MODEL("a = pad(u8(y), [1], [0], value=«300)"), "constants of u8"},
    {"E0204", MODEL("a = pad(y, [1], [0], value=«0.5)"), "whole numbers"},
    {"E0204", MODEL("state s: u8[3] = «300"), "constants of u8"},
    {"E0204", MODEL("state s: i32[3] = «constant(0.5)"), "whole numbers"},
    {"E0204", MODEL("state s: i64[3] = «9007199254740993"), "i64"},
    {"E0204", MODEL("param w: f[3] = «1e39"), "constants of f32"},
    {"E0204", MODEL("state s: i32[3] = 1\ns <- «0.5"), "whole numbers"},
    {"E0204", "flag k = «9007199254740993\n" REST, "constants of i64"},
    {"E0204", MODEL("a = u8(«300)"), "the number 300"},
    {"E0204", MODEL("a = u32(«-1)"), "from 0"},
    {"E0204", MODEL("a = i32(«1e10)"), "the number 10000000000"},
    {"E0204", MODEL("a = f16(«1e6)"), "element type f16"},
    {"E0204", MODEL("a = y «@ x"), "float"},
    {"E0204", MODEL("a = softmax(«y)"), "f32(...)"},
    {"E0204", MODEL("a = gather(x, «x)"), "integer"},
    {"E0204", MODEL("a = true «and x"), "bool"},
    {"E0204", "flag k = 2\n" MODEL("a = false «or k"), "bool"},
    {"E0210", MODEL("a = «abs(-9223372036854775807 - 1)"), "64 bits"},
    {"E0203", MODEL("a = «gather(zeros([3000000000]), i32(x))"), "the table has 3000000000 rows"},
    {"E0203", MODEL("a = «segment_sum(x, i32(x), 3000000000)"), "the table has 3000000000 rows"},
    // gradients
    {"E0203", MODEL("a = grad(«x, x)"), "mean(...) or sum(...)"},
    {"E0202", MODEL("a = grad(«2, x)"), "tensor"},
    {"E0202", MODEL("a = grad(sum(x), «2)"), "tensor"},
    {"E0204", MODEL("a = grad(sum(f32(y)), «y)"), "floating-point"},
    {"E0204", MODEL("h = bf16(x)\na = grad(sum(f32(h)), «h)"), "for storing"},
    {"E0227", MODEL("a = grad(sum(2 * x), «2 * x)"), "name the value first"},
    {"E0227", MODEL("param w: f[6] = zeros\na = grad(sum(x), «w)"), "is not computed from this"},
    // calls
    {"E0205", MODEL("a = linear(x, 2, «biass=false)"), "did you mean 'bias'?"},
    {"E0205", MODEL("a = «linear(x)"), "'m'"},
    {"E0205", MODEL("a = linear(x, 2, true, none, «5)"), "linear takes x, m, bias, init"},
    {"E0205", MODEL("a = softmax(x, «dim=1)"), "softmax takes x, axis"},
    {"E0205", NO_REST "optim { sgd(0.1), schedule = constant(«after=3) }\n",
     "constant takes warmup"},
    {"E0205", MODEL("a = linear(x, 2, «m=3)"), "twice"},
    {"E0205", MODEL("a = linear(m=3, «x)"), "after one by name"},
    {"E0205", MODEL("a = «where(x > 0)"), "'a'"},
    {"E0209", "block a(v) { return b(v) }\nblock b(v) { return «a(v) }\n" MODEL("c = a(x)"),
     "repeat"},
    {"E0214", "block «a(v) { w = v }\n" MODEL("c = a(x)"), "returns nothing"},
    {"E0215", "block a(v) { «metric q = mean(v)\nreturn v }\n" MODEL("c = a(x)"), "model"},
    {"E0215", MODEL("«return x"), "blocks"},
    {"E0215", MODEL("a = x\n «a <- x"), "not a state"},
    {"E0204", "block t(u: f[n], h: i[n] = «zeros([n])) { return h }\n" MODEL("a = t(x[0])"),
     "integer"},
    {"E0208", "block t(u: f[n], m) -> f[m] {\n m = n\n return «u }\n" MODEL("a = t(x[0], 2)"),
     "dimension m is 6 here but must be 2"},
    // sizes and arithmetic
    {"E0210", "let a = 2 «** 70\n" REST, "64 bits"},
    {"E0210", MODEL("repeat «1000000 { }"), "100000"},
    {"E0210", MODEL("a = broadcast(x, «[1099511627776, 4, 6])"), "2^40"},
    {"E0210", MODEL("a = «zeros([1000000, 1000000, 1000])"), "2^40"},
    {"E0210", MODEL("a = split(zeros([2 ** 40]), «2 ** 40, axis=0)"), "1000000"},
    {"E0211", "let a = 1 «/ 0\n" REST, "zero"},
    {"E0211", "let a = «log(0)\n" REST, "finite"},
    {"E0211", MODEL("a = y «// 0"), "zero"},
    // models
    {"E0216", "«let a = 1\n", "no model"},
    {"E0216", "model «m(x: f32[4,6]) { a = x }\noptim { sgd(1) }\n", "loss"},
    {"E0216", REST "model «n(x: f32[1]) { loss mean(x) }\n", "first one"},
    {"E0216", MODEL("loss mean(x)\n«loss mean(x) #"), "one loss"},
    {"E0203", "model m(x: f32[4,6]) { loss «x }\noptim { sgd(1) }\n", "scalar"},
    {"E0206", MODEL("metric a = mean(x)\nmetric «a = mean(x)"), "first one is here"},
    {"E0205", "model m(«x) { loss mean(x) }\noptim { sgd(1) }\n", "type"},
    // optim
    {"E0304", "model «m(x: f32[4,6]) { loss mean(linear(x, 1)) }\n", "optim {"},
    {"E0305", NO_REST "optim { «sdg(0.1) }\n", "did you mean 'sgd'?"},
    {"E0305", NO_REST "optim { sgd(0.1), schedule = «cosin(total=3) }\n", "'cosine'"},
    {"E0205", NO_REST "optim { sgd(0.1, «momentun=0.9) }\n", "'momentum'"},
    {"E0205", NO_REST "optim { «sgd() }\n", "'lr'"},
    {"E0205", NO_REST "optim { sgd(0.1), schedule = «cosine(warmup=3) }\n", "'total'"},
    {"E0223", NO_REST "optim { «adam(0.1, betas=(0.9, 1)) }\n", "the betas is 1;"},
    {"E0223", NO_REST "optim { «adamw(0.1, betas=(-0.1, 0.9)) }\n", "the betas is -0.1;"},
    {"E0223", NO_REST "optim { «adam(0.1, betas=0.9) }\n", "this is one: 0.9"},
    {"E0223", NO_REST "optim { «adam(0.1, betas=(0.9, 0.9, 0.9)) }\n", "these are 3"},
    {"E0223", NO_REST "optim { «rmsprop(0.1, alpha=1.5) }\n", "alpha is 1.5"},
    {"E0223", NO_REST "optim { «sgd(-1) }\n", "the lr of sgd is -1; it is 0 or more"},
    {"E0223", NO_REST "optim { «sgd(1, momentum=-0.5) }\n", "the momentum of sgd is -0.5"},
    {"E0223", NO_REST "optim { «sgd(1, nesterov=true) }\n", "without momentum"},
    {"E0223", NO_REST "optim { «rmsprop(0.1, eps=-1) }\n", "the eps of rmsprop is -1"},
    {"E0223", NO_REST "optim { «adagrad(0.1, decay=-1) }\n", "the decay of adagrad is -1"},
    {"E0223", NO_REST "optim { «adam(-0.1) }\n", "the lr of adam is -0.1"},
    {"E0223", NO_REST "optim { «adamw(0.1, decay=-0.01) }\n", "the decay of adamw is -0.01"},
    {"E0223", NO_REST "optim { sgd(-1), schedule = «constant() }\n", "a learning rate of -1"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «cosine(0) }\n", "a total of 0 steps for cosine"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «linear(0) }\n", "a total of 0 steps for linear"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «linear(-3) }\n", "a total of -3 steps"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «milestones([3], factor=-2) }\n",
     "factor of milestones is -2"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «exponential(-2) }\n",
     "factor of exponential is -2"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «polynomial(0) }\n",
     "a total of 0 steps for polynomial"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «inverse_root(0) }\n", "a warmup of 0 steps"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «restarts(0) }\n", "a period of 0 steps"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «restarts(3, longer=0.5) }\n", "longer is 0.5"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «one_cycle(1) }\n", "a total of 1 steps"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «one_cycle(9, part=2) }\n", "part is 2"},
    {"E0223", NO_REST "optim { «lion(0.1, betas=0.9) }\n", "betas are two numbers"},
    {"E0223", NO_REST "optim { «lamb(-0.1) }\n", "the lr of lamb is -0.1"},
    {"E0223", NO_REST "optim { «adafactor(0.1, most=0) }\n", "most is 0"},
    {"E0223", NO_REST "optim { «muon(0.1, decay=-1) }\n", "the decay of muon is -1"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «cosine(9, min=-1) }\n",
     "the min of cosine is -1"},
    {"E0223", NO_REST "optim { sgd(1), schedule = «step(9, factor=-2) }\n",
     "the factor of step is -2"},
    {"E0223", NO_REST "optim { sgd(0.1), schedule = «step(-2) }\n", "a size of -2"},
    {"E0223", NO_REST "optim { sgd(0.1), schedule = «cosine(9, warmup=-1) }\n", "of -1 steps"},
    {"E0215",
     "optimizer o(w, g) { param «q: f[1] = 1\nw <- w - q * g }\n" NO_REST "optim { o() }\n",
     "would not be trained"},
    {"E0215",
     "schedule s(lr) { param «q: f[] = 1\nreturn q }\n" NO_REST
     "optim { sgd(1), schedule = s() }\n",
     "would not be trained"},
    // initialisers, which are expanded in another function
    {"E0223", MODEL("param w: f[] = «orthogonal"), "in the standard initializer 'orthogonal'"},
    {"E0202", MODEL("param w: f[3] = «truncated_normal(\"a\")"), "'*' does not take"},
    {"E0201", "initializer i(dims) { return zeros(dims) + «nothing }\n" MODEL("param w: f[3] = i"),
     "in initializer 'i', used here"},
    {"E0301", NO_REST "optim { sgd(0.1), «clp = 1 }\n", "'clip'"},
    {"E0303", NO_REST "optim { sgd(0.1), clip = «0 }\n", "this is the number 0"},
    {"E0303", NO_REST "optim { sgd(0.1), clip = «1e-50 }\n", "clip is 1e-50, which is 0 in f32"},
    {"E0303", NO_REST "optim { sgd(0.1), clip = «1e50 }\n",
     "clip is 1e+50, which is infinite in f32"},
    {"E0303", NO_REST "optim { sgd(0.1), update_every = «0 }\n", "update_every is 0"},
    {"E0303", NO_REST "optim { sgd(«1e-50) }\n", "'lr' is 1e-50, which is 0 in f32"},
    {"E0303", NO_REST "optim { adam(0.1, eps=«1e-46) }\n", "'eps' is 1e-46, which is 0 in f32"},
    {"E0303", NO_REST "optim { sgd(«1e-50), schedule = constant() }\n", "'lr' is 1e-50"},
    {"E0303", NO_REST "optim { sgd(1), schedule = cosine(9, min=«1e-50) }\n", "'min' is 1e-50"},
    {"E0303", "flag lr = «1e-50\n" REST, "flag 'lr' is 1e-50, which is 0 in f32"},
    {"E0301", NO_REST "optim { sgd(0.1), clip = 1, «clip = 2 }\n", "twice"},
    {"E0301", NO_REST "optim { sgd(0.1)\n clip = 1 }\noptim { «clip = 2 }\n", "twice"},
    // data
    {"E0301", REST "data { train = csv(\"a\", «labl=last) }\n", "'label'"},
    {"E0302", REST "data { train = «cvs(\"a\") }\n", "'csv'"},
    {"E0303", REST "data { train = csv(\"a\", range=«80%..20%) }\n", "upwards"},
    {"E0303", REST "data { train = csv(\"a\", label=«middle) }\n", "last first none"},
    {"E0303", REST "data { train = csv(«3) }\n", "file names"},
    {"E0303", REST "data { train = csv(\"a\", label=«-1) }\n", "a column, counted from 0"},
    {"E0303", REST "data { train = csv(\"a\", delimiter=«\";;\") }\n", "one character"},
    {"E0303", REST "data { train = csv(\"a\", delimiter=«\".\") }\n", "that no number has"},
    {"E0303", REST "data { train = csv(\"a\", delimiter=«\"e\") }\n", "that no number has"},
    {"E0303", REST "data { train = csv(\"a\", delimiter=«\"\\n\") }\n", "this is the text \"\\n\""},
    {"E0303", REST "data { train = «csv(\"a\", \"b\") }\n", "1 file,"},
    {"E0303", REST "data { train = «npy(\"a\", \"b\") }\n", "1 file, one for each input"},
    {"E0304", REST "data { train = «csv() }\n", "no file"},
    {"E0304", REST "data { train = «text(\"a\", vocab=chars) }\n", "window"},
    {"E0206", REST "data { train = csv(\"a\")\n«train = csv(\"b\") }\n", "first one is here"},
    // train
    {"E0301", REST "train { «epoch = 3 }\n", "'epochs'"},
    {"E0301", REST "train { epochs = 3, «epochs = 4 }\n", "twice"},
    {"E0303", REST "train { epochs = «0 }\n", "above 0"},
    {"E0303", REST "train { steps = «2.5 }\n", "this is the number 2.5"},
    {"E0303", REST "train { steps = «1000000000000001 }\n", "from 1 to 10^15"},
    {"E0303", REST "train { accumulate = «1000001 }\n", "from 1 to 100000"},
    {"E0303", REST "train { precision = «bf61 }\n", "f32 tf32 bf16, not 'bf61'"},
    {"E0303", REST "train { epochs = 3, «steps = 5 }\n", "both"},
    {"E0303", REST "train { precision = «f64 }\n", "f32 tf32 bf16"},
    {"E0303", REST "train { precision = «f16 }\n", "loss scaling"},
    {"E0303", REST "train { precision = «3 }\n", "one of"},
    {"E0303", REST "train { «eval = 3 }\n", "every"},
    {"E0303", "flag s = 0.5\n" REST "train { seed = «s }\n", "flag 's' is 0.5"},
    {"E0303", REST "train { steps = «1.5e3 + 0.5 }\n", "a whole number"},
    {"E0304", REST "data { test = csv(\"a\") }\ntrain { eval = «tset every epoch }\n", "'test'"},
};

static const char *without_mark(ir_arena *a, const char *text, uint32_t *line, uint32_t *col) {
  const char *mark = strstr(text, "«");
  *line = *col = 1;
  for (const char *p = text; p < mark; p++) {
    *col = *p == '\n' ? 1 : *col + 1;
    *line += *p == '\n';
  }
  return ir_format(a, "%.*s%s", (int)(mark - text), text, mark + strlen("«"));
}

static void check_case(const error_case *k) {
  ir_arena *a = ir_arena_new();
  uint32_t line, col;
  const char *messages, *text = without_mark(a, k->text, &line, &col);
  ir_module *m = support_compile(a, text, &messages);
  const char *head = ir_format(a, "t.graph:%u:%u: error[%s]:", line, col, k->code);
  CHECK(!m, "this must not compile:\n%s", text);
  CHECK(strstr(messages, head), "no '%s' for\n%s\nbut\n%s", head, text, messages);
  CHECK(strstr(messages, k->words), "'%s' is not said:\n%s", k->words, messages);
  ir_arena_free(a);
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, part)); p++)
    n++;
  return n;
}

// Errors of one phase come together, in order, each once.
static void check_together(void) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  support_compile(a,
                  "let a = \nlet b = 3 4\nblock q( { }\nmodel m(x: f32[2]) {\n y = x +\n z = )\n"
                  " loss mean(x)\n}\n",
                  &messages);
  CHECK(count(messages, "error[E0004]") == 4, "four syntax errors:\n%s", messages);
  support_compile(a,
                  MODEL("a = nope\nb = x @ x\nc = a + 1\nrepeat 5 { d = x + zeros([7]) }\n"
                        "e = relu(y)"),
                  &messages);
  CHECK(count(messages, "error[") == 4, "four errors, each once:\n%s", messages);
  CHECK(!strstr(messages, "'a'"), "what follows from an error is silent:\n%s", messages);
  support_compile(a,
                  MODEL("if x > 0 { a = x\nif true { param q: f[6] = zeros } } else { a, b = "
                        "split(x, 2, axis=1) }\n"
                        "repeat 2.5 { c = x }\nd = a + q + b + c"),
                  &messages);
  CHECK(count(messages, "error[") == 2, "names that no branch and no iteration gave:\n%s",
        messages);
  support_compile(a, MODEL("a = x.shape[0]"), &messages);
  CHECK(count(messages, "error[") == 1, "one mistake of a habit:\n%s", messages);
  support_compile(a, MODEL("a = rope(reshape(x[:, 1:], [2, 2, 5]))"), &messages);
  CHECK(count(messages, "error[") == 1 && strstr(messages, "pairs of numbers"),
        "a standard block stops at its first error:\n%s", messages);
  ir_arena_free(a);
}

// Mistakes that could be mistaken for several: one error, with its words.
static void check_alone(void) {
  static const error_case alone[] = {
      {"E0001", "let «gr\u00f6\u00dfe = 2\n" REST, "a to z"},
      {"E0001", "let «\u03bb_2 = 2\n" REST, "a to z"},
      {"E0001", "let a = true «&& false\n" REST, "here it is written and"},
      {"E0001", MODEL("a = x > 0 «| x < 1"), "here it is written or"},
      {"E0001", "let a = «'b, c'\n" REST, "write \"b, c\""},
      {"E0201", MODEL("state s: «like foo = foo"), "foo"},
      {"E0204", MODEL("z = f32(y)\na = accuracy(x, «z)\nb = cross_entropy(x, z)"), "i32(...)"},
      {"E0208", MODEL("z = stack([y, y])\na = accuracy(x, «z)\nb = cross_entropy(x, z)"), "[2, 4]"},
      {"E0003", "data { train = csv(«\"d.csv, label=last) }\n" REST, "quote"},
      {"E0003", "data { train = csv(«\"d.csv) }\n" REST, "quote"},
      {"E0003", "data { train = csv(\"d.csv, label=\"last«\") }\n" REST, "or a text before it"},
      {"E0003", "data {\ntrain = csv(«\"d.csv,\n label=last)\n}\n" REST, "quote"},
      {"E0003", "data {\ntrain = csv(«\"d.csv\n}\n" REST, "quote"},
      {"E0004", "model m(x: f32[4,6]) {\n loss mean(linear(x, 1))\n«optim { sgd(0.1) }\n",
       "expected '}' before 'optim'"},
      {"E0004",
       "model m(x: f32[4,6]) {\n if true {\n repeat 2 {\n«data { train = csv(\"a.csv\") }\n",
       "t.graph:3:11: note: the brace opened here"},
      {"E0004", "model m(x: f32[4,6]) {\n if true {\n loss mean(x)\n}\n«optim all { }\ntrain { }\n",
       "t.graph:1:22: note: the brace opened here"},
      {"E0004", "block b(x) {\n return x\n\n«model m(x: f32[4,6]) { loss mean(linear(x, 1)) }\n",
       "expected '}' before 'model'"},
      {"E0004", "data {\n train = csv(\"a.csv\")\n«train { epochs = 2 }\n" REST,
       "expected '}' before 'train'"},
      {"E0004", "model m(x: f32[4,6]) {\n if true {\n loss mean(x)\n«", "found end of file"},
      {"E0201", "let A = «K / 2, K = 16\n" REST, "from here on"},
      {"E0201", "flag a = «K\nlet K = 16\n" REST, "from here on"},
      {"E0208",
       "model m(x: f32[4,6], «y: u8[3]) { loss cross_entropy(linear(x, 2), y) }\noptim { sgd(0.1) "
       "}\n",
       "the batch is 3 in 'y'"},
      {"E0303", NO_REST "optim { «adamw }\n", "call it: adamw(lr)"},
      {"E0003", MODEL("error «\"it is $, {not} so, 3x good"), "quote"},
  };
  for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
    ir_arena *a = ir_arena_new();
    const char *messages;
    uint32_t line, col;
    check_case(&alone[i]);
    support_compile(a, without_mark(a, alone[i].text, &line, &col), &messages);
    CHECK(count(messages, "error[") == 1, "one mistake, one error:\n%s", messages);
    ir_arena_free(a);
  }
}

// The chain of uses, outermost last; errors inside std show the user's line first.
static void check_chain(void) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  support_compile(a,
                  "block inner(v: f[b,c]) { return v @ v }\n"
                  "block outer(v: f[b,c]) { return inner(v) }\n" MODEL("a = outer(x)"),
                  &messages);
  const char *inner = strstr(messages, "t.graph:2:33: note: in block 'inner', used here");
  const char *outer = strstr(messages, "t.graph:4:5: note: in block 'outer', used here");
  CHECK(inner && outer && inner < outer, "the chain of uses:\n%s", messages);
  support_compile(a, MODEL("a = attention(x, x, x[:, 1:], causal=1)"), &messages);
  CHECK(strstr(messages, "t.graph:2:5: error"), "the user's line comes first:\n%s", messages);
  CHECK(strstr(messages, "note: in the standard block 'attention'"), "%s", messages);
  ir_arena_free(a);
}

// A flag is used where the data, the training or the model has its name, also where that is left out here.
static void check_flags(void) {
  static const struct {
    const char *data, *train;
    bool used;
  } uses[] = {
      {"f", "1", true}, {"2", "f", true}, {"2", "1", false}, {"2", "1 if true else f", true}};
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    ir_arena *a = ir_arena_new();
    const char *messages;
    support_compile(
        a,
        ir_format(a,
                  "flag f = 3\nmodel m(x: i32[2,4], y: i32[2,4]) {\n"
                  " param e: f32[9,9] = normal(1)\n loss cross_entropy(gather(e, x), y)\n}\n"
                  "data { train = text(\"t.txt\", window=4, stride=%s) }\n"
                  "optim { sgd(0.1) }\ntrain { steps = %s }\n",
                  uses[i].data, uses[i].train),
        &messages);
    CHECK(!strstr(messages, "W0228") == uses[i].used, "stride %s, steps %s:\n%s", uses[i].data,
          uses[i].train, messages);
    ir_arena_free(a);
  }
}

// What is in the file and changes nothing is said, but not where a condition may be meant to be false.
static void check_idle(void) {
  static const struct {
    const char *input, *freeze, *warning; // "": none
  } cases[] = {
      {"x", "ends_with(name, \".b\")", ""},
      {"x", "contains(name, \"nothere\")", "warning[W0230]"},
      {"x", "contains(name, \"q\") or starts_with(name, \"z\")", "such as 'linear.w'"},
      {"x", "false and contains(name, \"nothere\")", ""},
      {"x", "false", ""},
      {"zeros([4, 3])", "false", "t.graph:1:9: warning[W0231]"},
      {"relu(linear(x, 2)) as p", "false", "t.graph:1:41: warning[W0232]"},
      {"relu(linear(x, 2) as p)", "false", ""},
      {"relu(x) as p", "false", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ir_arena *a = ir_arena_new();
    const char *messages;
    ir_module *m = support_compile(a,
                                   ir_format(a,
                                             "model m(x: f32[4,3]) { loss mean(linear(%s, 1)) }\n"
                                             "optim { sgd(0.1), freeze = %s }\n",
                                             cases[i].input, cases[i].freeze),
                                   &messages);
    bool fine = *cases[i].warning ? strstr(messages, cases[i].warning) != NULL : !*messages;
    CHECK(m && fine, "freeze = %s of %s:\n%s", cases[i].freeze, cases[i].input, messages);
    ir_arena_free(a);
  }
}

static void check_define(const char *define, const char *want) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  fe_options o = {.defines = &define, .num_defines = 1};
  ir_module *m = support_compile_with(
      a,
      "let B = 4, K = true\nflag lr = 0.1\nmodel m(x: f32[B,2]) { loss mean(linear(x, 1)) }\n"
      "optim { sgd(lr) }\n",
      &o, &messages);
  if (*want)
    CHECK(!m && strstr(messages, want), "-D %s: no '%s' in\n%s", define, want, messages);
  else
    CHECK(m && ir_find_func(m, "step")->nodes.at[0]->type.dims[0] == 8, "-D %s: %s", define,
          messages);
  ir_arena_free(a);
}

int main(void) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_case(&cases[i]);
  check_together();
  check_alone();
  check_chain();
  check_flags();
  check_idle();
  check_define("B=8", "");
  check_define("B=2*4", "");
  check_define("BB=8", "did you mean 'B'?");
  check_define("lr=8", "./trainer --lr=");
  check_define("B", "has no value");
  check_define("B=", "-D B:1:");
  check_define("B=true", "another kind");
  check_define("B=1.5", "another kind");
  check_define("B=0", "at least 1");
  return support_finish("frontend errors");
}
