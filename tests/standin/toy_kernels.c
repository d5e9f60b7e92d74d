// toy_kernels.c: the kernels of the toy program (tests/runtime/support_program.h) as functions of
// the host, one block at a time. They are the very functions that the program runs on a CPU, so
// that both must give the same bits.
#include "tests/runtime/support_program.h"
#include "tests/standin/host_kernel.h"

#include <signal.h>

typedef struct toy_parameter {
  char *arena;
  int64_t slot;
} toy_parameter;

enum { TOY_BIG_BLOCK = 250, TOY_HUGE_BLOCK = 4096 };

// The table of toy_joint has calls that no test asks for.
enum { TOY_NO_CALL = 77, TOY_ROW_ARGS = 4 };
uint32_t k_rows_of_toy_joint[2 * (2 + TOY_ROW_ARGS)] = {[0] = TOY_NO_CALL, [7] = TOY_NO_CALL};

// The loss goes to another place first: the program copies it from there.
static void forward(int64_t block, const void *parameter) {
  const toy_parameter *p = parameter;
  char *arena = p->arena;
  (void)block;
  if (k_rows_of_toy_joint[0] != TOY_NO_CALL) // `check` has not put back what it wrote there
    return;
  toy_forward(arena, (int)p->slot);
  memcpy(arena + TOY_PROB + 32, arena + TOY_LOSS, sizeof(float));
  memset(arena + TOY_LOSS, 0xFF, sizeof(float));
}

static void gradient(int64_t block, const void *parameter) {
  const toy_parameter *p = parameter;
  (void)block;
  toy_gradient(p->arena, (int)p->slot);
}

static void update(int64_t block, const void *parameter) {
  char *arena = ((const toy_parameter *)parameter)->arena;
  const char *stop = getenv("TOY_STOP_AT"); // a step in which a signal comes
  (void)block;
  toy_update(arena);
  if (stop && atoll(stop) == *TOY_I(TOY_STEP))
    raise(SIGTERM);
}

static void big(int64_t block, const void *parameter) {
  char *arena = ((const toy_parameter *)parameter)->arena;
  for (int64_t i = block * TOY_BIG_BLOCK; i < (block + 1) * TOY_BIG_BLOCK; i++)
    TOY_F(TOY_BIG_AT)[i] = TOY_F(TOY_BIG_AT)[i] * 0.5f + TOY_F(TOY_W)[i % 5] * (float)i;
}

static void init(int64_t block, const void *parameter) {
  char *arena = ((const toy_parameter *)parameter)->arena;
  (void)block;
  for (int k = 0; k <= TOY_X; k++)
    TOY_F(TOY_W)[k] = (float)(*TOY_I(TOY_SEED) % 7) * 0.01f;
  memset(TOY_F(TOY_BIG_AT), 0, TOY_BIG * sizeof(float));
}

// A large state: counts on from what it was.
static void huge(int64_t block, const void *parameter) {
  int32_t *at = (int32_t *)(void *)((const toy_parameter *)parameter)->arena;
  for (int64_t i = block * TOY_HUGE_BLOCK; i < (block + 1) * TOY_HUGE_BLOCK; i++)
    at[i] += (int32_t)i;
}

typedef struct squares_parameter {
  char *at[4];
} squares_parameter;

static void square(int64_t block, const void *parameter) {
  toy_square(block, block + 1, ((const squares_parameter *)parameter)->at);
}

static void total(int64_t block, const void *parameter) {
  toy_total(block, block + 1, ((const squares_parameter *)parameter)->at);
}

static void wrong_total(int64_t block, const void *parameter) {
  const squares_parameter *p = parameter;
  total(block, parameter);
  *(float *)(void *)p->at[1] *= 1.001f;
}

static void long_total(int64_t block, const void *parameter) {
  const squares_parameter *p = parameter;
  total(block, parameter);
  ((float *)(void *)p->at[1])[1] = 1; // behind the end
}

// Squares and their sum are its part 1.
typedef struct joint_parameter {
  char *arena, *batch;
  int64_t first, num;
} joint_parameter;

static void joint(int64_t block, const void *parameter) {
  const joint_parameter *p = parameter;
  const uint32_t *word = k_rows_of_toy_joint + p->first;
  char *args[TOY_ROW_ARGS];
  for (int i = 0; i + 1 < TOY_ROW_ARGS; i++)
    args[i] = p->arena + (int64_t)word[2 + i] * 64;
  args[TOY_ROW_ARGS - 1] = (char *)(uintptr_t)word[2 + TOY_ROW_ARGS - 1];
  if (block != 0 || p->num != 1 || word[0] != 1 || word[1] != 1 ||
      k_rows_of_toy_joint[7] != TOY_NO_CALL)
    return;
  toy_square(0, 10, args);
  toy_total(0, 1, args);
}

#define TOY_KERNEL_SHARED(name, num_threads, type, shared)                                         \
  const standin_host_kernel toy_##name##_host = {num_threads, sizeof(type), name, shared}
#define TOY_KERNEL(name, num_threads, type) TOY_KERNEL_SHARED(name, num_threads, type, 0)
TOY_KERNEL(forward, 128, toy_parameter);
TOY_KERNEL(gradient, 128, toy_parameter);
TOY_KERNEL(update, 32, toy_parameter);
TOY_KERNEL_SHARED(big, 256, toy_parameter, 50000);
TOY_KERNEL(init, 64, toy_parameter);
TOY_KERNEL(huge, 256, toy_parameter);
TOY_KERNEL(square, 64, squares_parameter);
TOY_KERNEL(total, 64, squares_parameter);
TOY_KERNEL(wrong_total, 64, squares_parameter);
TOY_KERNEL(long_total, 64, squares_parameter);
TOY_KERNEL(joint, 64, joint_parameter);

int toy_kernels_failures(void) { // CHECK of support_program.h is not used here
  return failures;
}
