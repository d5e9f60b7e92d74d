// test_emulator_faults.c: small kernels with one fault each; the emulator names every one of them,
// with block, thread and the line of the kernel, in every order of threads, blocks and copies.
#include "codegen/codegen.h"
#include "tests/emulator/emulator.h"
#include "tests/unit/support_passes.h"

#include <stdlib.h>
#include <string.h>

enum { FLOATS = 1024, ORDERS = 12 };

typedef struct planted {
  const char *name;
  int threads;
  const char *body; // x: FLOATS floats, only read; y: as many, to write; t: the thread
  emu_fault fault;
  const char *says; // somewhere in the report
  int64_t blocks;
  bool at_place; // the report ends with the line of the kernel
  bool in_fast;  // reported by fast launches, too
} planted;

static const planted faults[] = {
    // global memory
    {"read_beyond", 32, "k_store_f32(y + t * 4, k_load_f32(x + 1000 + t * 4));", EMU_OUT_OF_BOUNDS,
     "reads 16 bytes at offset 4096 of a buffer of 4096 bytes", 1, true, false},
    {"read_before", 32, "k_store_f32_one(y + t, k_load_f32_one(x + t - 1));", EMU_OUT_OF_BOUNDS,
     "reads 4 bytes at offset -4", 1, true, false},
    {"write_beyond", 32, "k_store_f32_part(y + 962 + t * 2, k_f32(1.0f), 2);", EMU_OUT_OF_BOUNDS,
     "writes 4 bytes at offset 4096", 1, true, false},
    {"across_the_end", 32, "k_store_f32(y + (t + 225) * 4, k_f32(1.0f));", EMU_OUT_OF_BOUNDS,
     "writes 16 bytes at offset 4096", 1, true, false},
    {"write_input", 32, "k_store_f32_one((float *)x + t, k_f32(1.0f));", EMU_READ_ONLY,
     "a buffer that is only read", 1, true, false},
    {"odd_address", 32, "k_store_f32_one((float *)(void *)((char *)y + 2 + t * 4), k_f32(1.0f));",
     EMU_MISALIGNED, "a multiple of 4", 1, true, false},
    {"claims_alignment", 32, "k_store_f32_one(y + t, k_load_f32_aligned(x + t));", EMU_MISALIGNED,
     "not a multiple of 16", 1, true, false},
    {"claims_alignment_of_store", 32, "k_store_f32_aligned(y + 4 * t + 2, k_f32(1.0f));",
     EMU_MISALIGNED, "not a multiple of 16", 1, true, false},
    {"odd_buffer", 32,
     "const k_argument odd = {(char *)x + 8}; k_store_f32_one(y + t, k_load_f32_one((float "
     "*)odd));",
     EMU_MISALIGNED, "not at a multiple of 16", 1, true, false},
    {"far_gather", 32, "k_store_f32(y + t * 4, k_gather_f32(x, k_lane() * 340 + t, 1, 4, VL));",
     EMU_OUT_OF_BOUNDS, "reads 4 bytes", 1, true, false},
    // races in global memory
    {"same_output", 32, "k_store_f32_one(y, k_f32((float)t));", EMU_GLOBAL_RACE, "offset 0", 1,
     true, false},
    {"between_blocks", 32, "k_store_f32_one(y + t, k_load_f32_one(y + 31 - t + (task ? 0 : 32)));",
     EMU_GLOBAL_RACE, "block", 2, true, false},
    {"no_barrier_global", 64,
     "k_store_f32_one(y + t, k_f32(1.0f)); k_store_f32_one(y + 64 + t, k_load_f32_one(y + 63 - "
     "t));",
     EMU_GLOBAL_RACE, "order them", 1, true, false},
    {"same_narrow_output", 32, "k_store_bf16_one((uint16_t *)y + t / 2, k_f32((float)t));",
     EMU_GLOBAL_RACE, "offset 0", 1, true, false},
    {"narrow_beside_whole", 64,
     "uint16_t *const h = (uint16_t *)y;\n"
     "if (t < 32) k_store_bf16_one(h + 4 * t + 1, k_f32(1.0f)); else k_store_bf16(h + 4 * (t - "
     "32), k_f32(0.0f));",
     EMU_GLOBAL_RACE, "order them", 1, true, false},
    {"narrow_between_blocks", 32,
     "uint16_t *const h = (uint16_t *)y; k_store_bf16_one(h + 2 * t + task, k_load_bf16_one(h + 2 "
     "* t));",
     EMU_GLOBAL_RACE, "block", 2, true, false},
    // shared memory
    {"too_much_of_its_own", 32,
     "__shared__ k_array<float, 8192> s; __shared__ k_array<float, 4128> u; s[t] = u[t] = 1.0f;",
     EMU_SHARED_BOUNDS, "49280 bytes of shared arrays of its own", 1, true, false},
    {"given_too_little", 32,
     "K_SHARED(s, float, 64, 0); K_SHARED(u, float, 64, 16256); s[t] = u[t] = 1.0f;",
     EMU_SHARED_BOUNDS, "up to byte 16512 of the 16384", 1, true, false},
    {"in_one_place", 32,
     "K_SHARED(s, float, 32, 128); K_SHARED(u, uint16_t, 64, 128); s[t] = 1.0f; put(y + t, "
     "(float)u[63 - 2 * t]);",
     EMU_RACE, "which thread 31 wrote with no barrier in between", 1, true, false},
    {"index_beyond", 32, "__shared__ k_array<float, 64> s; s[2 * t + 2] = 1.0f;", EMU_SHARED_BOUNDS,
     "writes elements 64 to 64 of a shared array of 64", 1, true, false},
    {"index_before", 32,
     "__shared__ k_array<float, 64> s; s[t] = 1.0f; __syncwarp(); put(y + t, s[t - 1]);",
     EMU_SHARED_BOUNDS, "reads elements -1 to -1", 1, true, false},
    {"vector_beyond", 32, "__shared__ k_array<float, 126> s; s.store4(t * 4, k_f32(0.0f));",
     EMU_SHARED_BOUNDS, "elements 124 to 127", 1, true, false},
    {"vector_askew", 32, "__shared__ k_array<float, 256> s; s.store4(t * 4 + 2, k_f32(0.0f));",
     EMU_MISALIGNED, "not a multiple of 4", 1, true, false},
    {"not_written", 32, "__shared__ k_array<int, 64> s; s[t] = 1; __syncwarp(); s[t] = s[32 + t];",
     EMU_UNWRITTEN, "which no thread of the block has written", 1, true, false},
    {"written_by_another_block", 32,
     "__shared__ k_array<int, 32> s; if (task == 0) s[t] = 1; put(y + 32 * task + t, (float)s[t]);",
     EMU_UNWRITTEN, "which no thread of the block has written", 2, true, false},
    {"no_barrier", 64, "__shared__ k_array<float, 64> s; s[t] = 1.0f; put(y + t, s[63 - t]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"no_barrier_in_warp", 32,
     "__shared__ k_array<float, 32> s; s[t] = 1.0f; put(y + t, s[31 - t]);", EMU_RACE,
     "no barrier in between", 1, true, false},
    {"warp_barrier_is_not_enough", 64,
     "__shared__ k_array<float, 64> s; s[t] = 1.0f; __syncwarp(); put(y + t, s[63 - t]);", EMU_RACE,
     "no barrier in between", 1, true, false},
    {"shuffle_is_no_barrier", 32,
     "__shared__ k_array<float, 32> s; s[t] = 1.0f;\n"
     "put(y + t, k_shuffle_xor((float)t, 1) + s[31 - t]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"two_writers", 64, "__shared__ k_array<float, 64> s; s[t / 2] = (float)t;", EMU_RACE,
     "writes element", 1, true, false},
    {"write_after_read", 64,
     "__shared__ k_array<float, 64> s; s[t] = 1.0f; __syncthreads(); const float v = s[(t + 1) % "
     "64];\n"
     "s[t] = v; __syncthreads(); put(y + t, s[t]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"loop_without_second_barrier", 64,
     "__shared__ k_array<float, 64> s;\n"
     "for (int i = 0; i < 4; i++) { s[t] = (float)i; __syncthreads(); put(y + t, s[63 - t]); }",
     EMU_RACE, "no barrier in between", 1, true, false},
    // barriers and collectives
    {"skipped_barrier", 64, "if (t != 40) __syncthreads(); put(y + t, 1.0f);", EMU_DEADLOCK,
     "waits with 63 of 64 threads", 1, false, true},
    {"early_return", 128, "if (t >= 96) return; __syncthreads(); put(y + t, 1.0f);", EMU_DEADLOCK,
     "waits with 96 of 128 threads", 1, false, true},
    {"other_barrier", 64, "if (t < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
     EMU_DIVERGENCE, "other threads of the block at that in line", 1, true, true},
    {"half_a_shuffle", 32, "if (t < 16) put(y + t, k_shuffle_xor(1.0f, 1));", EMU_DIVERGENCE,
     "waits in k_shuffle_xor for its whole warp", 1, false, true},
    {"two_distances", 32, "put(y + t, k_shuffle_xor(1.0f, t < 16 ? 1 : 2));", EMU_DIVERGENCE,
     "k_shuffle_xor with", 1, true, true},
    {"shuffle_against_syncwarp", 32,
     "if (t < 16) put(y + t, k_shuffle_xor(1.0f, 1)); else __syncwarp();", EMU_DIVERGENCE,
     "__syncwarp", 1, true, true},
    {"barrier_against_mma", 64,
     "float c[4] = {0}; uint32_t a[4] = {0};\n"
     "if (t == 5) __syncthreads(); else k_mma_bf16(c, a, 0, 0);\n"
     "put(y + t, c[0]);",
     EMU_DIVERGENCE, "waits in k_mma_bf16 for its whole warp, of which thread 5 waits at a barrier",
     1, false, true},
    // asynchronous copies
    {"no_wait", 32,
     "__shared__ k_array<float, 128> s; k_async_16(s.at(t * 4), x + t * 4, true); "
     "k_async_commit();\n"
     "put(y + t, s[t * 4]);",
     EMU_IN_FLIGHT, "asynchronous copy to it in flight", 1, true, false},
    {"no_commit", 32,
     "__shared__ k_array<float, 128> s; k_async_16(s.at(t * 4), x + t * 4, true);\n"
     "k_async_wait<0>(); put(y + t, s[t * 4]);",
     EMU_IN_FLIGHT, "in flight", 1, true, false},
    {"waits_for_too_few", 32,
     "__shared__ k_array<float, 256> s;\n"
     "for (int i = 0; i < 2; i++) { k_async_16(s.at(i * 128 + t * 4), x + t * 4, true); "
     "k_async_commit(); }\n"
     "k_async_wait<1>(); put(y + t, s[128 + t * 4]);",
     EMU_IN_FLIGHT, "in flight", 1, true, false},
    {"waits_without_barrier", 64,
     "__shared__ k_array<float, 64> s; k_async_4(s.at(t), x + t, true); k_async_commit();\n"
     "k_async_wait<0>(); put(y + t, s[63 - t]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"copies_too_early", 64,
     "__shared__ k_array<float, 64> s; s[t] = 1.0f; __syncthreads();\n"
     "put(y + t, s[63 - t]);\n"
     "k_async_4(s.at(t), x + t, true); k_async_commit(); k_async_wait<0>();",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"copy_askew", 32,
     "__shared__ k_array<float, 256> s; k_async_16(s.at(t * 4 + 1), x + t * 4, true);",
     EMU_MISALIGNED, "copies to 4 elements", 1, true, false},
    {"copy_from_askew", 32,
     "__shared__ k_array<float, 256> s; k_async_16(s.at(t * 4), x + t, true);", EMU_MISALIGNED,
     "a multiple of 16", 1, true, false},
    {"copy_beyond", 32,
     "__shared__ k_array<float, 124> s; k_async_16(s.at(t * 4), x + t * 4, true);",
     EMU_SHARED_BOUNDS, "copies to elements 124 to 127", 1, true, false},
    {"copy_from_beyond", 32,
     "__shared__ k_array<float, 128> s; k_async_16(s.at(t * 4), x + 900 + t * 4, true);",
     EMU_OUT_OF_BOUNDS, "reads 16 bytes", 1, true, false},
    // products of four warps
    {"not_ready", 128,
     "__shared__ k_array<uint16_t, 4096> s; float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "__syncthreads(); k_wgmma_begin();\nconst k_operand o = k_operand_at(s.begin(), 16, 1024); "
     "k_wgmma_bf16<false, false>(c, o, o); k_wgmma_commit(); k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_RACE, "with no k_wgmma_ready since", 1, true, false},
    {"ready_without_barrier", 128,
     "__shared__ k_array<uint16_t, 4096> s; float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "k_wgmma_ready(); k_wgmma_begin();\nconst k_operand o = k_operand_at(s.begin(), 16, 1024); "
     "k_wgmma_bf16<false, false>(c, o, o); k_wgmma_commit(); k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"not_begun", 128,
     "__shared__ k_array<uint16_t, 4096> s; float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "k_wgmma_ready(); __syncthreads();\nconst k_operand o = k_operand_at(s.begin(), 16, 1024); "
     "k_wgmma_bf16<false, false>(c, o, o); k_wgmma_commit(); k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_RACE, "no k_wgmma_begin in front", 1, true, false},
    {"overwrites_an_operand", 128,
     "__shared__ k_array<uint16_t, 4096> s; float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "k_wgmma_ready(); __syncthreads(); k_wgmma_begin();\nconst k_operand o = "
     "k_operand_at(s.begin(), 16, 1024); k_wgmma_bf16<false, false>(c, o, o); "
     "k_wgmma_commit();\ns[t] = 1; k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_RACE, "", 1, true, false},
    {"operand_beyond", 128,
     "__shared__ k_array<uint16_t, 4096> s; float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "k_wgmma_ready(); __syncthreads(); k_wgmma_begin();\nconst k_operand o = "
     "k_operand_at(s.begin() + 1024, 16, 1024); k_wgmma_bf16<false, false>(c, o, o); "
     "k_wgmma_commit();\n k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_SHARED_BOUNDS, "multiplies elements", 1, true, false},
    {"operand_askew", 128,
     "K_SHARED(s, uint16_t, 4096, 128); float c[8][4] = {};\n"
     "for (int i = t; i < 4096; i += 128) s[i] = 0;\n"
     "k_wgmma_ready(); __syncthreads(); k_wgmma_begin();\nconst k_operand o = "
     "k_operand_at(s.begin(), 16, 1024); k_wgmma_bf16<false, false>(c, o, o); "
     "k_wgmma_commit();\n k_wgmma_wait<0>();\n"
     "put(y + t, c[0][0]);",
     EMU_MISALIGNED, "from byte 128 on, not a multiple of 1024", 1, true, false},
    // matrix loads
    {"ldmatrix_askew", 32,
     "__shared__ k_array<uint16_t, 512> s; for (int i = t; i < 512; i += 32) s[i] = 0;\n"
     "__syncthreads(); uint32_t r[4]; k_ldmatrix_x4(r, s.at(t * 8 + 4)); put(y + t, (float)r[0]);",
     EMU_MISALIGNED, "not a multiple of 8", 1, true, false},
    {"ldmatrix_without_barrier", 32,
     "__shared__ k_array<uint16_t, 256> s; for (int i = t; i < 256; i += 32) s[i] = 0;\n"
     "uint32_t r[4]; k_ldmatrix_x4(r, s.at(t * 8)); put(y + t, (float)r[0]);",
     EMU_RACE, "no barrier in between", 1, true, false},
    {"group_in_a_branch", 64,
     "__shared__ k_group_scratch s; vf v = k_f32(0.0f);\n"
     "if (t < 32) v = k_group_sum<64>(k_f32(1.0f), s);\n"
     "put(y + t, v[0]);",
     EMU_DEADLOCK, "waits with 32 of 64 threads", 1, false, true},
};
enum { NUM = sizeof faults / sizeof *faults };

#define GIVEN "1, 16384, " // blocks of a multiprocessor; bytes of shared memory
static bool is_given(const planted *f) {
  return strstr(f->body, "K_SHARED(") != NULL;
}

static const char *text_of_all(ir_arena *a) {
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, cg_cuda_prelude(a));
  ir_buf_puts(&b, "static inline void put(float *p, float x) { k_store_f32_one(p, k_f32(x)); }\n");
  for (int i = 0; i < NUM; i++)
    ir_buf_printf(
        &b,
        "%s(%s, %d, %s2) {\n"
        "const float *const x = (const float *)args[0]; float *const y = (float *)args[1];\n"
        "const int t = (int)threadIdx.x;\n%s\n}\n",
        is_given(&faults[i]) ? "K_KERNEL_SHARED" : "K_KERNEL", faults[i].name, faults[i].threads,
        is_given(&faults[i]) ? GIVEN : "", faults[i].body);
  return ir_buf_str(&b);
}

// Buffers with room around them, so that "beyond" is nobody's.
typedef struct memory {
  float before[64], x[FLOATS], between[64], y[FLOATS], after[64];
} memory;

// Who reads too early may come before who writes.
static bool is_early(const planted *f, const emu_report *r) {
  return f->fault == EMU_RACE && r->fault == EMU_UNWRITTEN;
}

static void check_report(const planted *f, const emu_report *r, unsigned order) {
  if (r->fault != f->fault && !is_early(f, r))
    test_fail("%s, order %u: %s, not %s: %s", f->name, order, emu_fault_name(r->fault),
              emu_fault_name(f->fault), r->text);
  else if (!strstr(r->text, f->says) && order == 0 && !is_early(f, r))
    test_fail("%s: does not say '%s': %s", f->name, f->says, r->text);
  else if (!strstr(r->text, f->name) || !strstr(r->text, ", block ") || r->block < 0)
    test_fail("%s, order %u: no kernel and block: %s", f->name, order, r->text);
  else if (f->at_place && (r->thread < 0 || !strstr(r->text, "(k.cpp:")))
    test_fail("%s, order %u: no thread and place: %s", f->name, order, r->text);
}

static void check_fault(emu_machine *m, void *library, const planted *f) {
  _Alignas(128) static memory all;
  char *args[2] = {(char *)all.x, (char *)all.y};
  for (int i = 0; i < FLOATS; i++)
    all.x[i] = (float)i;
  emu_forget_all(m);
  emu_buffer(m, all.x, sizeof all.x, false);
  emu_buffer(m, all.y, sizeof all.y, true);
  const emu_entry *e = emu_find(library, f->name);
  for (unsigned order = 0; e && order < ORDERS; order++) {
    emu_options o = {.order = order};
    emu_report r;
    if (emu_launch(m, e, f->blocks, args, sizeof args, &o, &r))
      test_fail("%s, order %u: nothing reported", f->name, order);
    else
      check_report(f, &r, order);
  }
  emu_options fast = {.fast = true};
  emu_report r;
  bool ok = !f->in_fast || emu_launch(m, e, f->blocks, args, sizeof args, &fast, &r);
  if (f->in_fast && (ok || r.fault != f->fault))
    test_fail("%s: not reported by a fast launch", f->name);
}

// --- wrong launches ---------------------------------------------------------------------------
static void check_launches(emu_machine *m, void *library) {
  const emu_entry *e = emu_find(library, "skipped_barrier");
  char *args[2] = {0};
  emu_report r;
  if (emu_launch(m, e, 1, args, sizeof args - 8, NULL, &r) || r.fault != EMU_LAUNCH ||
      !strstr(r.text, "8 bytes of parameters for a kernel that takes 16"))
    test_fail("a parameter too few: %s", r.text);
  if (emu_launch(m, e, 0, args, sizeof args, NULL, &r) || r.fault != EMU_LAUNCH)
    test_fail("no blocks: %s", r.text);
  if (emu_find(library, "no_such_kernel"))
    test_fail("finds a kernel that is not there");
}

int main(void) {
  ir_arena *a = ir_arena_new();
  void *library = emu_build(text_of_all(a), NULL);
  if (!library) {
    test_fail("kernels do not compile");
    return test_report("emulator_faults");
  }
  emu_machine *m = emu_new();
  for (int i = 0; i < NUM; i++)
    check_fault(m, library, &faults[i]);
  check_launches(m, library);
  emu_free(m);
  ir_arena_free(a);
  return test_report("emulator_faults");
}
