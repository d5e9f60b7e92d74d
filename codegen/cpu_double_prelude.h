// Functions of doubles on vectors: the part of the prelude that only files with kernels of f64 have, after
// cpu_math_prelude.h.
// clang-format off: one-line functions, side by side, read as tables

#define K_LIBM(name)                                                                               \
  K vd k_##name(vd x) { K_EACH(x, __builtin_##name) return x; }
K_LIBM(exp) K_LIBM(expm1) K_LIBM(log) K_LIBM(log1p) K_LIBM(sin) K_LIBM(cos) K_LIBM(tanh) K_LIBM(erf)
K vd k_sigmoid(vd x) {
  vd e = k_exp(-k_abs(x));
  return k_select(x < 0.0, e, k_f64(1.0)) / (e + 1.0);
}
K vd k_pow(vd x, vd y) {
  for (int i = 0; i < VL; i++)
    x[i] = __builtin_pow(x[i], y[i]);
  return x;
}
