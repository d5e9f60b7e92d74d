// matmul_border.c: products of windows that look at an image's border of zeros.
//
//   dz: f32[64,16,16,32], lines 4-11 of 16 hold numbers, the others are a pad's zeros
//   a of the product: [64*12*12, 5*5*32], windows of 5 lines that begin at lines 0 to 11
//
//   rows of a that begin at line 0    need the last fifth of k: line 4
//                            line 2    the last three fifths:   lines 4, 5, 6
//                            line 5    all of it
//
// Tiles of such rows take those steps and no others. What is left out adds 0 * b = 0, so sums have the
// same bits; but for infinite b, whose products with the border would be NaN.
//
// Only lines, of the outermost part of k, are left out: a tile has rows that begin at all places of a line,
// and each of those needs something else of it.
#include "codegen/cpu_matmul.h"

// What there is to gain must be more than what counting costs.
static const double MOST_SHARE = 0.98;

typedef struct lines {
  const ir_type *type;
  int dim;
  int64_t apart;  // elements from a line to the next: the stride of `dim`
  int64_t inside; // the farthest element within its line that any place of the product reads
} lines;

// Moves from image to image.
static bool is_outside(const lines *l, int64_t stride) {
  return stride % (l->apart * l->type->dims[l->dim]) == 0;
}

// Counts what moves within a line; -1: nothing but that and images, else the part that moves from line to
// line, or -2 where there are several of those.
static int find_lines(lines *l, const mm_axes *axes) {
  int found = -1;
  for (int i = 0; i < axes->num; i++) {
    if (axes->stride[i] < 0)
      return -2;
    if (is_outside(l, axes->stride[i]))
      continue;
    if (axes->stride[i] < l->apart)
      l->inside += (axes->size[i] - 1) * axes->stride[i];
    else if (axes->stride[i] % l->apart || found >= 0)
      return -2;
    else
      found = i;
  }
  return found;
}

static int64_t below(const mm_axes *axes, int part) {
  int64_t size = 1;
  for (int i = part + 1; i < axes->num; i++)
    size *= axes->size[i];
  return size;
}

// The border along one dimension of the padded buffer.
static mm_border border_along(const ir_node *pad, int dim, const mm_operand *a) {
  const mm_border none = {0};
  int64_t stride[IR_MAX_RANK];
  ir_row_major(&pad->type, stride);
  lines l = {&pad->type, dim, stride[dim], 0};
  int row = find_lines(&l, &a->x), step = find_lines(&l, &a->k);
  l.inside += a->offset % l.apart;
  bool batch = find_lines(&l, &a->batch) != -1;
  if (batch || row < 0 || step != 0 || l.inside >= l.apart) // k: only its outermost part
    return none;
  int64_t dims = pad->type.dims[dim], first = a->offset / l.apart % dims;
  int64_t lo = ir_attr_ints(pad, IR_ATTR_LO, NULL)[dim],
          hi = ir_attr_ints(pad, IR_ATTR_HI, NULL)[dim];
  mm_border b = {.limited = true,
                 .below = below(&a->x, row),
                 .lines = a->x.size[row],
                 .step = a->x.stride[row] / l.apart,
                 .run = below(&a->k, 0),
                 .apart = a->k.stride[0] / l.apart,
                 .low = lo - first,
                 .high = dims - hi - first};
  int64_t last = (b.lines - 1) * b.step + (a->k.size[0] - 1) * b.apart;
  return first + last < dims ? b : none; // else lines of the next image
}

mm_border mm_border_of(const ir_node *buffer, const mm_operand *a, int64_t k) {
  if (!ir_is_zero_pad(buffer))
    return (mm_border){0};
  for (int dim = 0; dim < buffer->type.rank; dim++) {
    mm_border b = border_along(buffer, dim, a);
    if (b.limited && mm_border_share(&b, k, 1) <= MOST_SHARE)
      return b;
  }
  return (mm_border){0};
}

static int64_t at_least(int64_t x, int64_t least) {
  return x < least ? least : x;
}

void mm_border_steps(const mm_border *b, int64_t m0, int64_t m1, int64_t *first, int64_t *stop) {
  int64_t from = m0 / b->below, to = m1 / b->below;
  if (from / b->lines != to / b->lines) // rows of several images
    return;
  int64_t near = from % b->lines * b->step, far = to % b->lines * b->step;
  int64_t begin = ir_ceil_div(at_least(b->low - far, 0), b->apart) * b->run;
  int64_t end = ir_ceil_div(at_least(b->high - near, 0), b->apart) * b->run;
  *first = at_least(*first, begin);
  *stop = end < *stop ? end : *stop;
}

static int64_t skip(int64_t y, int64_t from, int64_t end) {
  return y >= from && y < end ? end : y;
}

// By lines: an image may have millions, of which few at its ends do not take all steps.
double mm_border_share(const mm_border *b, int64_t k, int64_t mr) {
  if (!b->limited)
    return 1;
  int64_t more = (mr - 1) / b->below; // lines of a tile behind its first
  int64_t whole = ir_ceil_div(at_least(b->low, 0), b->step);
  // Where the last window begins that sees numbers only.
  int64_t room = b->high - 1 - (k / b->run - 1) * b->apart;
  int64_t end = room < 0 ? 0 : room / b->step + 1;
  double missing = 0;
  for (int64_t y = skip(0, whole, end); y < b->lines; y = skip(y + 1, whole, end)) {
    int64_t first = 0, stop = k, last = y + more < b->lines ? y + more : b->lines - 1;
    mm_border_steps(b, y * b->below, last * b->below, &first, &stop);
    missing += (double)(k - at_least(stop - first, 0));
  }
  return 1 - missing / ((double)b->lines * (double)k);
}
