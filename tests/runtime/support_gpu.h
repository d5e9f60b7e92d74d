// support_gpu.h: the toy program for a GPU, and the stand-in driver that it runs on.
//
// gpu_program: the plan of the CPU's program, so that checkpoints are the same bytes.
// wide_program: with a state of 5 MB, which a checkpoint moves in several pieces, and batches of
// 300 KB, which a thread prepares; it works on a copy of its states that has the toy's own plan.
#ifndef TESTS_SUPPORT_GPU_H
#define TESTS_SUPPORT_GPU_H

#include "tests/runtime/support_program.h"

enum {
  WIDE_HUGE = 5 << 20,
  WIDE_STATES = TOY_STATES + WIDE_HUGE,
  WIDE_SLOT = 300 << 10,
  WIDE_TOY = WIDE_STATES + 2 * WIDE_SLOT, // a toy's arena among the temporaries
  WIDE_ARENA = WIDE_TOY + TOY_ARENA,
};

enum { FORWARD, GRADIENT, UPDATE, BIG, INIT, HUGE_STATE, SQUARE, TOTAL, JOINT, NUM_TOY_ENTRIES };

static const mlrt_gpu_entry toy_entries[NUM_TOY_ENTRIES] = {
    {"toy_forward", 0, 128, 0, "exp, log, mean", "toy.graph:5"},
    {"toy_gradient", 0, 128, 0, "mul, sum", "toy.graph:5"},
    {"toy_update", 1, 32, 0, "mul, add", "toy.graph:6"},
    {"toy_big", 1, 256, 50000, "mul, add", "toy.graph:7"},
    {"toy_init", 1, 64, 0, "cast, mul", "toy.graph:1"},
    {"toy_huge", 1, 256, 0, "add", "toy.graph:8"},
    {"toy_square", 0, 64, 0, "mul", "toy.graph:5"},
    {"toy_total", 0, 64, 0, "sum", "toy.graph:5"},
    {"toy_joint", 0, 64, 0, "1 calls of squares", "toy.graph:5"},
};

#define TOY_IMAGE(arch, unit, text)                                                                \
  { arch, unit, (const unsigned char *)(text), 0, sizeof(text) }
#define TOY_UNIT_0                                                                                 \
  " toy_forward toy_gradient toy_square toy_total toy_wrong_total toy_long_total toy_joint "       \
  "k_rows_of_toy_joint"
#define TOY_UNIT_1 " toy_update toy_big toy_init toy_huge"
static const mlrt_gpu_image toy_images[] = {
    TOY_IMAGE("sm_80", 0, "image sm_80" TOY_UNIT_0),
    TOY_IMAGE("sm_80", 1, "image sm_80" TOY_UNIT_1),
    TOY_IMAGE("sm_90a", 0, "image sm_90a" TOY_UNIT_0),
    TOY_IMAGE("sm_90a", 1, "image sm_90a" TOY_UNIT_1),
    TOY_IMAGE("compute_90", 0, "image compute_90" TOY_UNIT_0),
    TOY_IMAGE("compute_90", 1, "image compute_90" TOY_UNIT_1),
};
static const int toy_num_images = sizeof toy_images / sizeof *toy_images;

static const mlrt_gpu_code toy_code = {
    .calls = &mlrt_gpu_calls,
    .images = toy_images,
    .num_images = &toy_num_images,
    .entries = toy_entries,
    .num_entries = NUM_TOY_ENTRIES,
    .num_units = 2,
};

// --- the functions
static inline void toy_launch(mlrt_gpu *gpu, int entry, int64_t blocks, char *arena, int slot) {
  const struct {
    char *arena;
    int64_t slot;
  } parameter = {arena, slot};
  mlrt_gpu_launch(gpu, entry, blocks, &parameter, sizeof parameter);
}

static inline void gpu_init(mlrt_gpu *gpu, char *arena, int slot) {
  toy_launch(gpu, INIT, 1, arena, slot);
}

static inline void gpu_eval(mlrt_gpu *gpu, char *arena, int slot) {
  toy_launch(gpu, FORWARD, 1, arena, slot);
  mlrt_gpu_copy(gpu, arena + TOY_LOSS, arena + TOY_PROB + 32, sizeof(float));
}

static inline void gpu_accumulate(mlrt_gpu *gpu, char *arena, int slot) {
  gpu_eval(gpu, arena, slot);
  toy_launch(gpu, GRADIENT, 1, arena, slot);
}

static inline void gpu_step(mlrt_gpu *gpu, char *arena, int slot) {
  gpu_accumulate(gpu, arena, slot);
  toy_launch(gpu, UPDATE, 1, arena, slot);
  toy_launch(gpu, BIG, TOY_BIG / 250, arena, slot);
  toy_launch(gpu, BIG, 0, arena, slot); // nothing to do is no launch
}

// A function of the toy on the copy; the batch goes to the toy's slot 0.
static inline void wide_run(mlrt_gpu *gpu, char *arena, int slot, mlrt_launch_fn f) {
  char *toy = arena + WIDE_TOY;
  mlrt_gpu_copy(gpu, toy, arena, TOY_STATES);
  mlrt_gpu_copy(gpu, toy + TOY_STATES, arena + WIDE_STATES + slot * WIDE_SLOT, TOY_SLOT);
  f(gpu, toy, 0);
  mlrt_gpu_copy(gpu, arena, toy, TOY_STATES);
}
static inline void wide_init(mlrt_gpu *gpu, char *arena, int slot) {
  wide_run(gpu, arena, slot, gpu_init);
}
static inline void wide_eval(mlrt_gpu *gpu, char *arena, int slot) {
  wide_run(gpu, arena, slot, gpu_eval);
}
static inline void wide_accumulate(mlrt_gpu *gpu, char *arena, int slot) {
  wide_run(gpu, arena, slot, gpu_accumulate);
}
static inline void wide_step(mlrt_gpu *gpu, char *arena, int slot) {
  wide_run(gpu, arena, slot, gpu_step);
  toy_launch(gpu, HUGE_STATE, WIDE_HUGE / (4096 * 4), arena + TOY_STATES, slot);
}

// --- the programs
static inline mlrt_program gpu_program(const mlrt_program *cpu) {
  static mlrt_kernel kernel;
  kernel = toy_kernels[0];
  static const mlrt_kernel_phase phases[] = {{NULL, 10}, {NULL, 1}};
  kernel.phases = phases;
  kernel.first_entry = SQUARE;
  mlrt_program p = *cpu;
  static const mlrt_launch_fn launches[MLRT_NUM_FUNCS] = {[MLRT_INIT] = gpu_init,
                                                          [MLRT_STEP] = gpu_step,
                                                          [MLRT_EVAL] = gpu_eval,
                                                          [MLRT_PREDICT] = gpu_eval,
                                                          [MLRT_ACCUMULATE] = gpu_accumulate};
  for (int i = 0; i < MLRT_NUM_FUNCS; i++) {
    p.funcs[i].run = NULL;
    p.funcs[i].launch = launches[i];
  }
  p.target = "cuda:sm_90a,sm_80";
  p.gpu = &toy_code;
  p.kernels = &kernel;
  return p;
}

// Its kernel has no entry of its own.
static inline mlrt_program joint_program(const mlrt_program *gpu) {
  static const mlrt_kernel_phase phases[] = {{NULL, 1}};
  static mlrt_kernel kernel;
  kernel = gpu->kernels[0];
  kernel.phases = phases;
  kernel.num_phases = 1;
  kernel.first_entry = JOINT;
  kernel.part = 1 + 1;
  mlrt_program p = *gpu;
  p.kernels = &kernel;
  return p;
}

static inline mlrt_program wide_program(const mlrt_program *gpu) {
  enum { NUM = sizeof toy_states / sizeof *toy_states };
  static mlrt_tensor states[NUM + 1];
  static mlrt_input inputs[2];
  static mlrt_result results[3], outputs[1];
  static const mlrt_launch_fn launches[MLRT_NUM_FUNCS] = {[MLRT_INIT] = wide_init,
                                                          [MLRT_STEP] = wide_step,
                                                          [MLRT_EVAL] = wide_eval,
                                                          [MLRT_PREDICT] = wide_eval,
                                                          [MLRT_ACCUMULATE] = wide_accumulate};
  memcpy(states, toy_states, sizeof toy_states);
  states[NUM] = (mlrt_tensor){"huge",    MLRT_I32,    1, {WIDE_HUGE / 4}, TOY_STATES,
                              WIDE_HUGE, MLRT_BUFFER, 0, "toy.graph:8",   NULL};
  for (int i = 0; i < 2; i++) {
    inputs[i] = toy_inputs[i];
    inputs[i].offset += WIDE_STATES - TOY_STATES;
  }
  for (int i = 0; i < 3; i++) {
    results[i] = toy_results[i];
    results[i].offset += WIDE_TOY;
  }
  outputs[0] = toy_outputs[0];
  outputs[0].offset += WIDE_TOY;
  mlrt_program p = *gpu;
  for (int i = 0; i < MLRT_NUM_FUNCS; i++) {
    p.funcs[i].launch = launches[i];
    p.funcs[i].results = i == MLRT_PREDICT ? outputs : results;
  }
  p.states = states;
  p.num_states = NUM + 1;
  p.inputs = inputs;
  p.state_bytes = WIDE_STATES;
  p.staging_bytes = 2 * WIDE_SLOT;
  p.staging_slot_bytes = WIDE_SLOT;
  p.temp_bytes = TOY_ARENA;
  p.arena_bytes = WIDE_ARENA;
  return p;
}

// --- the driver
static inline void use_standin(void) {
  setenv("MLTC_CUDA_DRIVER", STANDIN_LIBRARY, 1);
  setenv("MLTC_STANDIN_KERNELS", TOY_KERNELS, 1);
}

// Runs and checks with NAME=VALUE in the environment.
static inline void expect_with(const char *name, const char *value, const mlrt_program *p,
                               const char *args, int code, const char *words) {
  setenv(name, value, 1);
  toy_expect(p, args, code, words);
  unsetenv(name);
}

#endif
