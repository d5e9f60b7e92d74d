// The second half of the prelude: float functions and random numbers on vectors (cpu_prelude.h has
// the types). Errors stay within 2 ulp over the whole range, sigmoid's within 2.6 (tests/unit/test_cpu_math.c).
// clang-format off: one-line functions, side by side, read as tables

// --- float functions --------------------------------------------------------------------------
// exp, tanh and erf have a form for each kind of vector:
//   AVX-512  |x| falls in one of 32 cells; permutations of two registers pick the cell's
//            coefficients, and a short polynomial in u, the distance from the cell's centre, does
//            the rest. exp: 2^(i/16) from one register, and vscalefps.
//   AVX2     erf in the same way, with 8 cells.
//   any      one formula for all arguments, or two and a choice.
// Largest errors over all floats, in ulp:     AVX-512   AVX2   any (x86-64, no FMA)
//   exp                                       1.00      1.00   0.97
//   tanh                                      1.60      1.22   1.22
//   erf                                       1.90      1.75   1.16
//   sigmoid                                   2.56      2.13   2.13
// -0, infinities and NaN give what they should; tanh and erf are odd to the bit, and far from 0 they are 1, for
// 1 - tanh and 1 + erf are then 0. Subnormal results
// of exp may be 0, which is what trainers take them for.
#if defined(__AVX512F__) && defined(__AVX512DQ__) && VL == 16
#define K_WIDE 1
K vf k_pick(const float *table, vi i) { // one of 32
  return (vf)__builtin_ia32_vpermi2varps512(*(const vf *)table, i, *(const vf *)(table + VL));
}
#elif defined(__AVX2__) && VL == 8
#define K_TABLES 1
K vf k_pick(const float *table, vi i) { return __builtin_ia32_permvarsf256(*(const vf *)table, i); }
#endif

// x = n ln 2 + r: p = e^r - 1 and s = 2^n, for n in [-127, 127]; n = -127 gives s = 0. The addend
// that rounds x / ln 2 to n leaves the exponent bits of s in the last bits of the sum.
#define K_ROUND 12583039.0f // 1.5 * 2^23 + 127
#define K_EXP_SUM(x) ((x) * 1.44269504f + K_ROUND)
#define K_EXP_CORE(x, sum, p, s)                                                                   \
  vf s = (sum);                                                                                    \
  vf n_##s = s - K_ROUND;                                                                          \
  vf r_##s = (x) - n_##s * 0.693359375f;                                                           \
  r_##s = r_##s + n_##s * 2.12194440e-4f;                                                          \
  vf p = 2.3280251e-4f * r_##s + 1.3833507e-3f;                                                    \
  p = p * r_##s + 8.326932e-3f;                                                                    \
  p = p * r_##s + 4.1668184e-2f;                                                                   \
  p = p * r_##s + 1.6666697e-1f;                                                                   \
  p = p * r_##s + 4.9999994e-1f;                                                                   \
  p = p * (r_##s * r_##s) + r_##s;                                                                 \
  s = (vf)((vi)s << 23);
// The same of any x: beyond the limits s (p + 1) is 0 or infinite, of a NaN it is one. n stops at 127, since 2^128 is
// no float: the polynomial holds up to r = ln 2.
#define K_EXP_PARTS(x, p, s)                                                                       \
  vf z_##s = k_max(k_f32(-88.0f), (x));                                                            \
  K_EXP_CORE(z_##s, k_min(k_f32(K_ROUND + 127), K_EXP_SUM(z_##s)), p, s)
#ifdef K_WIDE
static const float k_exp_table[16] __attribute__((aligned(64))) = { // 2^(i/16)
    1.0f, 1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f, 1.2968396f, 1.3542556f,
    1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f, 1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};
// x = k ln 2 + u, k a multiple of 1/16: e^u by a polynomial, 2^k from the table and vscalefps,
// which takes the floor of k and is right beyond the limits, too. There u is cut down to do no harm
// (also a NaN; then k is NaN or infinite).
K vf k_exp(vf x) {
  vf m = x * 1.44269504f + 786432.0f, k = m - 786432.0f; // the last bits of m count in 1/16
  vf u = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  u = (vf)__builtin_ia32_rangeps512_mask(u, k_f32(0.0625f), 2, u, (uint16_t)-1, 4);
  vf p = (0.16666718f * u + 0.5000162f) * u + 1.0f;
  vf t = (vf)__builtin_ia32_permvarsf512(*(const vf *)k_exp_table, (vi)m);
  t = t * (u * p) + t;
  return (vf)__builtin_ia32_scalefps512_mask(t, k, t, (uint16_t)-1, 4);
}
#else
K vf k_exp(vf x) {
  K_EXP_PARTS(x, p, s)
  return p * s + s;
}
#endif
// 2^n (e^r - 1) + (2^n - 1): no digits are lost where e^x is nearly 1.
K vf k_expm1(vf x) {
  K_EXP_PARTS(x, p, s)
  return k_copysign(p * s + (s - 1.0f), x);
}
#ifdef K_WIDE
static const float k_tanh_table[6][32] __attribute__((aligned(64))) = {
  { // centre
    1.9787363f, 2.2782502f, 2.5862696f, 2.8888214f, 3.192588f, 3.492102f, 3.7940462f, 4.0996356f,
    4.5552855f, 5.1591735f, 5.7739973f, 6.3718104f, 6.980559f, 7.584447f, 8.19198f, 8.754501f,
    0.0f, 0.1149757f, 0.19000608f, 0.2645808f, 0.34097812f, 0.41813487f, 0.49331713f, 0.5692588f,
    0.68529767f, 0.83535844f, 0.98936814f, 1.1394289f, 1.2894896f, 1.4450182f, 1.5953827f,
    1.7442284f},
  { // value there
    0.9624941f, 0.9792207f, 0.98872364f, 0.9938271f, 0.99663293f, 0.9981489f, 0.9989876f,
    0.99945045f, 0.99977905f, 0.99993396f, 0.9999807f, 0.99999416f, 0.9999983f, 0.99999946f,
    0.9999998f, 0.99999994f, 0.0f, 0.114471726f, 0.18775207f, 0.25857508f, 0.32835034f, 0.395358f,
    0.45684522f, 0.51481473f, 0.59495264f, 0.68334275f, 0.7570928f, 0.8142217f, 0.8589928f,
    0.8947034f, 0.92097056f, 0.9407151f},
  { // u^1
    0.07360438f, 0.04112625f, 0.02242521f, 0.012307488f, 0.0067226654f, 0.003698731f,
    0.0020237346f, 0.0010988113f, 0.00044173968f, 0.00013203504f, 3.861589e-5f, 1.168335e-5f,
    3.4579832e-6f, 1.0335727e-6f, 3.0676634e-7f, 9.966318e-8f, 1.0f, 0.98689616f, 0.96474916f,
    0.9331389f, 0.89218605f, 0.84369206f, 0.7912924f, 0.7349658f, 0.6460319f, 0.53304327f,
    0.42681092f, 0.33704332f, 0.26213142f, 0.1995059f, 0.15181322f, 0.11505513f},
  { // u^2
    -0.07084297f, -0.04027237f, -0.022172013f, -0.012231623f, -0.00669969f, -0.0036924488f,
    -0.002020586f, -0.001098472f, -0.000441809f, -0.00013203757f, -3.856891e-5f, -1.1700329e-5f,
    -3.4918291e-6f, 5.6633246e-7f, 1.7652172e-6f, 1.106294e-6f, 1.0052199e-5f, -0.112971365f,
    -0.18113172f, -0.24128635f, -0.29294595f, -0.33355957f, -0.3614962f, -0.37836653f,
    -0.38435918f, -0.3642517f, -0.32313946f, -0.2744271f, -0.22517024f, -0.17849854f, -0.1398159f,
    -0.10823395f},
  { // u^3
    0.04378841f, 0.025835572f, 0.014516811f, 0.00809436f, 0.004460438f, 0.0024625561f,
    0.0013499181f, 0.0007341845f, 0.0003008424f, 9.0021385e-5f, 2.6227573e-5f, 7.915401e-6f,
    2.3304317e-6f, 7.0050845e-7f, 2.131582e-7f, 7.314547e-8f, -0.33415824f, -0.31583476f,
    -0.2874524f, -0.24855496f, -0.20116217f, -0.14936388f, -0.09863257f, -0.05025086f,
    0.012904446f, 0.070795156f, 0.10205526f, 0.11088947f, 0.10594671f, 0.09316482f, 0.07816583f,
    0.06348765f},
  { // u^4
    -0.018497827f, -0.011786623f, -0.0069607543f, -0.003954739f, -0.0022156693f, -0.001203861f,
    -0.0007077688f, -0.00035727635f, -0.00014885582f, -4.4653996e-5f, -1.34572565e-5f,
    -3.793024e-6f, -8.3854445e-7f, -1.6607824e-5f, -2.1184802e-5f, -1.8570357e-5f, 0.019089654f,
    0.07309886f, 0.1133404f, 0.14453973f, 0.16153936f, 0.16964664f, 0.16435209f, 0.14951241f,
    0.12053166f, 0.07290425f, 0.031084832f, 0.0010914085f, -0.015865259f, -0.023808545f,
    -0.025294926f, -0.023601942f},
};
K vf k_tanh(vf x) {
  vf t = k_min(k_f32(8.94f), k_abs(x)); // where the last polynomial is 1
  vi i = (vi)(t * 0.823f + 0.5f) >> 20; // cells: eighths of the octaves of [0.5, 8)
  vf u = t - k_pick(k_tanh_table[0], i);
  vf p = k_pick(k_tanh_table[5], i) * u + k_pick(k_tanh_table[4], i);
  p = p * u + k_pick(k_tanh_table[3], i);
  p = p * u + k_pick(k_tanh_table[2], i);
  return k_copysign(p * u + k_pick(k_tanh_table[1], i), x);
}
#else
K vf k_tanh(vf x) { // an odd polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere
  vf t = k_abs(x), s = x * x, t2 = k_min(k_f32(20.0f), t + t);
  K_EXP_CORE(t2, K_EXP_SUM(t2), p, e)
  vf far = 1.0f - 2.0f / (p * e + (e + 1.0f));
  vf near = -5.70498873e-3f * s + 2.06390888e-2f;
  near = near * s - 5.37397155e-2f;
  near = near * s + 1.33314422e-1f;
  near = near * s - 3.33332819e-1f;
  return k_copysign(k_select(t < 0.625f, near * (s * t) + t, far), x);
}
#endif
K vf k_sigmoid(vf x) { // of -|x| alone: no overflow, and all digits far below 0
  vf e = k_exp(-k_abs(x));
  return k_select(x < 0.0f, e, k_f32(1.0f)) / (e + 1.0f);
}
// The exponent of u > 0, still shifted, for a mantissa in [2/3, 4/3).
K vi k_exponent(vf u) { return ((vi)u - 0x3f2aaaab) & (int32_t)0xff800000; }
// log((1 + f) 2^e) with e from k_exponent, plus bias times log 2
K vf k_log_core(vf f, vi e, vf bias) {
  vf i = K_TO(e, vf) * 1.19209290e-7f + bias;
  vf s = f * f;
  vf r = -0.130310059f * s - 0.121483512f;
  vf t = 0.140869141f * s + 0.139814854f;
  r = r * s - 0.166846126f;
  t = t * s + 0.200120345f;
  r = r * s - 0.249996200f;
  r = t * f + r;
  r = r * f + 0.333331972f;
  r = r * f - 0.5f;
  r = r * s + f;
  return i * 0.693147182f + r;
}
K vf k_log_limits(vf x, vf one_plus, vf r) {
  r = k_select(one_plus > 0.0f, r, k_select(one_plus == 0.0f, k_f32(-__builtin_inff()),
                                            k_f32(__builtin_nanf(""))));
  return k_select(x < __builtin_inff(), r, x); // inf and NaN
}
K vf k_log(vf x) {
  vi tiny = x < 1.17549435e-38f; // denormals are scaled up by 2^23
  vf u = k_select(tiny, x * 8388608.0f, x);
  vi e = k_exponent(u);
  vf r = k_log_core((vf)((vi)u - e) - 1.0f, e, k_select(tiny, k_f32(-23.0f), k_f32(0.0f)));
  return k_log_limits(x, x, r);
}
K vf k_log1p(vf x) {
  vf u = x + 1.0f;
  vf c = x - (u - 1.0f); // what rounding took from u
  vi e = k_exponent(u);
  vf down = (vf)(0x3f800000 - k_min(e, k_i32(127 << 23))); // 2^-e; 0 where c no longer matters
  vf f = ((vf)((vi)u - e) - 1.0f) + c * down;
  return k_log_limits(x, u, k_select(k_abs(x) < 1e-8f, x, k_log_core(f, e, k_f32(0.0f))));
}
#ifdef K_WIDE
static const float k_erf_table[5][32] __attribute__((aligned(64))) = {
  { // value at the centre
    0.0f, 0.14018059f, 0.27606758f, 0.40375784f, 0.5200707f, 0.6227747f, 0.7106845f, 0.7836263f,
    0.842295f, 0.88803816f, 0.92261094f, 0.9479409f, 0.9659305f, 0.9783157f, 0.9865812f,
    0.9919284f, 0.99528176f, 0.99732023f, 0.9985215f, 0.99920774f, 0.9995877f, 0.9997917f,
    0.9998978f, 0.9999513f, 0.99997747f, 0.9999899f, 0.9999956f, 0.99999815f, 0.9999992f,
    0.9999997f, 0.9999999f, 1.0f},
  { // u^1
    1.1283791f, 1.1109188f, 1.0601434f, 0.9806219f, 0.8792114f, 0.76408195f, 0.6436377f,
    0.5255299f, 0.41591865f, 0.3190613f, 0.23724368f, 0.1709897f, 0.119453825f, 0.08088816f,
    0.05309146f, 0.03377685f, 0.020829f, 0.01245009f, 0.0072132554f, 0.0040508388f, 0.0022050245f,
    0.0011634203f, 0.00059499685f, 0.00029494936f, 0.00014172125f, 6.6004744e-5f, 2.979686e-5f,
    1.303825e-5f, 5.529953e-6f, 2.2734284e-6f, 9.0593187e-7f, 3.5607576e-7f},
  { // u^2
    2.1782647e-5f, -0.13871622f, -0.26477274f, -0.36737072f, -0.43916857f, -0.4771194f,
    -0.4822569f, -0.45936438f, -0.41546547f, -0.35863748f, -0.29621634f, -0.23486635f,
    -0.17895152f, -0.13133542f, -0.09281399f, -0.06322301f, -0.04164466f, -0.026405483f,
    -0.01620462f, -0.00964513f, -0.00554194f, -0.0030913078f, -0.0016065179f, -0.00080495205f,
    -0.00036650235f, -0.00025327437f, -6.7349516e-5f, -6.451311e-5f, 7.471641e-6f, -1.8605466e-5f,
    1.1324273e-6f, 3.10902e-5f},
  { // u^3
    -0.3773859f, -0.35828054f, -0.3089933f, -0.23493366f, -0.14673395f, -0.05615192f,
    0.026087184f, 0.09235088f, 0.13793486f, 0.16217928f, 0.16745722f, 0.15801865f, 0.138983f,
    0.11515225f, 0.09050068f, 0.06777354f, 0.04851938f, 0.033282503f, 0.02191716f, 0.0138711715f,
    0.008446913f, 0.004956567f, 0.0028010767f, 0.00152943f, 0.0008047929f, 0.0004089079f,
    0.00020061643f, 9.509018e-5f, 4.3556123e-5f, 1.9276482e-5f, 8.247444e-6f, 2.3422211e-7f},
  { // u^4
    0.022257533f, 0.065491214f, 0.1250373f, 0.16567808f, 0.18157464f, 0.1844102f, 0.15082476f,
    0.10730122f, 0.059182152f, 0.038165037f, -0.01700608f, -0.033406254f, -0.057863824f,
    -0.04445828f, -0.04931871f, -0.053982724f, -0.027946675f, -0.032569617f, -0.021331355f,
    -0.0048099575f, 1.6927335e-5f, 0.0047612796f, -0.010427781f, -0.012715672f, -0.01598061f,
    0.011523513f, -0.007823531f, 0.0051201703f, -0.0069375136f, 0.0026251993f, -0.0011738971f,
    -0.008351475f},
};
K vf k_erf(vf x) {
  vf t = k_min(k_f32(3.93f), k_abs(x));
  vf m = t * 8.0078201f + 12582912.0f; // cells of 1023/8192, numbered by the last bits of m
  vf u = t - (m - 12582912.0f) * 0.1248779296875f;
  vi i = (vi)m;
  vf p = k_pick(k_erf_table[4], i) * u + k_pick(k_erf_table[3], i);
  p = p * u + k_pick(k_erf_table[2], i);
  p = p * (u * u) + k_pick(k_erf_table[0], i); // this order: the linear term's error counts once
  return k_copysign(k_pick(k_erf_table[1], i) * u + p, x);
}
#elif defined(K_TABLES)
static const float k_erf_table[7][8] __attribute__((aligned(64))) = {
  { // value at the centre
    0.0f, 0.54752845f, 0.8670583f, 0.9757977f, 0.997346f, 0.9998277f, 0.99999344f, 0.9999999f},
  { // u^1
    1.1283792f, 0.85091406f, 0.3649033f, 0.088987604f, 0.01234082f, 0.0009732381f, 4.3647084e-5f,
    1.103552e-6f},
  { // u^2
    -1.2239981e-5f, -0.45204863f, -0.3877105f, -0.14182371f, -0.02622697f, -0.002581758f,
    -0.00013756679f, -1.0773077e-5f},
  { // u^3
    -0.37572125f, -0.12356346f, 0.15294223f, 0.12104637f, 0.03304005f, 0.004252782f,
    0.00028087368f, 9.96172e-6f},
  { // u^4
    -0.0047097984f, 0.183502f, 0.04801268f, -0.04917285f, -0.026278114f, -0.0049100025f,
    -0.00045815582f, 0.00023555032f},
  { // u^5
    0.13610014f, -0.001068963f, -0.06477701f, -0.0056397975f, 0.012334818f, 0.003860854f,
    0.00044355993f, 5.124375e-5f},
  { // u^6
    -0.047134817f, -0.04790528f, 0.009748797f, 0.015677579f, -0.0023872643f, -0.0009917915f,
    0.00016082136f, -0.002315694f},
};
K vf k_erf(vf x) {
  vf t = k_min(k_f32(3.93f), k_abs(x));
  vf m = t * 1.8823529f + 12582912.0f; // cells of 17/32
  vf u = t - (m - 12582912.0f) * 0.53125f;
  vi i = (vi)m;
  vf p = k_pick(k_erf_table[6], i) * u + k_pick(k_erf_table[5], i);
  p = p * u + k_pick(k_erf_table[4], i);
  p = p * u + k_pick(k_erf_table[3], i);
  p = p * u + k_pick(k_erf_table[2], i);
  p = p * (u * u) + k_pick(k_erf_table[0], i); // this order: the linear term's error counts once
  return k_copysign(k_pick(k_erf_table[1], i) * u + p, x);
}
#else
K vf k_erf(vf x) { // 1 - exp(a polynomial), an odd polynomial near 0
  vf t = k_min(k_f32(4.0f), k_abs(x)), s = x * x;
  vf a = -1.72853470e-5f * t + 3.83197126e-4f;
  vf b = -3.88396438e-3f * t + 2.42546219e-2f;
  a = a * (t * t) + b;
  a = a * t - 1.06777877e-1f;
  a = a * t - 6.34846687e-1f;
  a = a * t - 1.28717512e-1f;
  a = a * t - t;
  K_EXP_CORE(a, K_EXP_SUM(a), p, e)
  vf far = (1.0f - e) - p * e;
  vf near = -5.96761703e-4f * s + 4.99119423e-3f;
  near = near * s - 2.67681349e-2f;
  near = near * s + 1.12819925e-1f;
  near = near * s - 3.76125336e-1f;
  near = near * s + 1.28379166e-1f;
  return k_select(t > 0.927734375f, k_copysign(far, x), near * x + x);
}
#endif
// sin (quarter = 0) and cos (quarter = 1): the argument is reduced in double precision; beyond
// 2^20 lane by lane in libm.
K vf k_sin_cos(vf x, int quarter) {
  vi far = k_not(k_abs(x) < 1048576.0f);
  vd d = K_TO(k_select(far, (vf){0}, x), vd);
  vd turns = d * 0.63661977236758134308 + 6755399441055744.0;
  vd n = turns - 6755399441055744.0;
  vf r = K_TO((d - n * 0x1.921FB544p0) - n * 0x1.0B4611A626331p-34, vf);
  vi q = K_TO((vl)turns, vi) + quarter;
  vf z = r * r;
  vf s = -1.95152959e-4f * z + 8.33216087e-3f;
  s = (s * z - 1.66666546e-1f) * (z * r) + r;
  vf c = 2.44331571e-5f * z - 1.38873163e-3f;
  c = (c * z + 4.16666457e-2f) * (z * z) + (1.0f - 0.5f * z);
  vf y = k_select((q & 1) != 0, c, s);
  y = (vf)((vi)y ^ ((q & 2) << 30));
  if (K_ANY(far))
    for (int i = 0; i < VL; i++)
      if (far[i])
        y[i] = quarter ? __builtin_cosf(x[i]) : __builtin_sinf(x[i]);
  return y;
}
K vf k_sin(vf x) {
  return k_select(x == 0.0f, x, k_sin_cos(x, 0));
}
K vf k_cos(vf x) { return k_sin_cos(x, 1); }
// x^y = 2^(y log2 x) in double precision for positive finite x; the rest lane by lane in libm.
K vf k_pow(vf x, vf y) {
  vi usual = (x > 0.0f) & (x < __builtin_inff()) & (k_abs(y) < 1e30f);
  vd d = K_TO(k_select(usual, x, k_f32(1.0f)), vd);
  vl e = ((vl)d - 0x3fe6a09e667f3bcd) >> 52; // mantissa in [sqrt(1/2), sqrt(2))
  vd m = (vd)((vl)d - (vl)((vlu)e << 52));
  vd s = (m - 1.0) / (m + 1.0), z = s * s;
  vd p = z * (1.0 / 15) + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  vd log2 = K_TO(K_TO(e, vi), vd) + (p * z * s + s) * 2.88539008177792681472;
  vd t = log2 * K_TO(k_select(usual, y, k_f32(0.0f)), vd);
  t = k_min(k_f64(200.0), k_max(k_f64(-200.0), t));
  vd round = t + 6755399441055744.0;
  vd f = (t - (round - 6755399441055744.0)) * 0.69314718055994530942;
  vd g = f * (1.0 / 3628800) + 1.0 / 362880;
  g = g * f + 1.0 / 40320;
  g = g * f + 1.0 / 5040;
  g = g * f + 1.0 / 720;
  g = g * f + 1.0 / 120;
  g = g * f + 1.0 / 24;
  g = g * f + 1.0 / 6;
  g = g * f + 0.5;
  g = g * (f * f) + f + 1.0;
  vf r = K_TO((vd)((vl)g + (vl)((vlu)(vl)round << 52)), vf);
  if (K_ANY(~usual))
    for (int i = 0; i < VL; i++)
      if (!usual[i])
        r[i] = __builtin_powf(x[i], y[i]);
  return r;
}

// --- random numbers: Philox4x32-10, one block of four words per lane ----------------------------
// State words sit in 64-bit lanes, whose upper halves are ignored by the next multiplication.
#define K_LOW(x) ((x) & 0xffffffffu)
#define K_PHILOX(name, words, v, wide)                                                             \
  typedef struct words {                                                                           \
    v w[4];                                                                                        \
  } words;                                                                                         \
  K words name(vl seed, vl step, uint32_t stream, wide block) {                                    \
    wide c0 = block, c1 = block >> 32, c2 = (wide){0} + stream;                                    \
    wide c3 = (wide){0} + (uint32_t)step[0];                                                       \
    uint32_t k0 = (uint32_t)seed[0], k1 = (uint32_t)((uint64_t)seed[0] >> 32);                     \
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {                           \
      wide p0 = K_LOW(c0) * 0xD2511F53u, p1 = K_LOW(c2) * 0xCD9E8D57u;                             \
      c0 = (p1 >> 32) ^ c1 ^ k0;                                                                   \
      c1 = p1;                                                                                     \
      c2 = (p0 >> 32) ^ c3 ^ k1;                                                                   \
      c3 = p0;                                                                                     \
    }                                                                                              \
    return (words){{K_TO(c0, v), K_TO(c1, v), K_TO(c2, v), K_TO(c3, v)}};                          \
  }
typedef uint32_t vu_half __attribute__((vector_size(VL * 2)));
typedef uint64_t vlu_half __attribute__((vector_size(VL * 4)));
typedef uint32_t vu_two __attribute__((vector_size(VL * 8)));
K_PHILOX(k_philox, k_words, vu, vlu)
K_PHILOX(k_philox_half, k_words_half, vu_half, vlu_half)
// Uniform in [0, 1): element e has word e % 4 of block e / 4.
K vf k_unit(vu word) { return K_TO((vi)(word >> 8), vf) * 5.9604644775390625e-8f; }
K vf k_uniform(vl seed, vl step, uint32_t stream, vl element) {
  k_words r = k_philox(seed, step, stream, (vlu)(element >> 2));
  vi which = K_TO(element & 3, vi), odd = (which & 1) != 0;
  return k_unit(k_select((which & 2) != 0, k_select(odd, r.w[3], r.w[2]),
                         k_select(odd, r.w[1], r.w[0])));
}
#if VL == 16
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define K_WEAVE(a, b)                                                                              \
  __builtin_shufflevector(a, b, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12,   \
                          20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31)
#elif VL == 8
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#define K_WEAVE(a, b)                                                                              \
  __builtin_shufflevector(a, b, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
#else
#define K_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define K_WEAVE(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 1, 3, 5, 7)
#endif
// The same for elements first, first + 1, ...: they lie in at most VL / 4 + 1 blocks, so that half
// a vector of blocks will do.
K vf k_uniform_run(vl seed, vl step, uint32_t stream, int64_t first) {
  vlu_half lane;
  for (int i = 0; i < VL / 2; i++)
    lane[i] = (uint64_t)i;
  k_words_half r = k_philox_half(seed, step, stream, lane + (uint64_t)(first >> 2));
  vu_two words = K_WEAVE(K_JOIN(r.w[0], r.w[1]), K_JOIN(r.w[2], r.w[3]));
  uint32_t memory[VL * 2];
  __builtin_memcpy(memory, &words, sizeof words);
  vu word;
  __builtin_memcpy(&word, memory + (first & 3), sizeof word);
  return k_unit(word);
}
// Normal by Box-Muller: element e has words 2 (e % 2) and 2 (e % 2) + 1 of block e / 2.
K vf k_normal(vl seed, vl step, uint32_t stream, vl element) {
  k_words r = k_philox(seed, step, stream, (vlu)(element >> 1));
  vi odd = K_TO(element & 1, vi) != 0;
  vu w1 = k_select(odd, r.w[2], r.w[0]), w2 = k_select(odd, r.w[3], r.w[1]);
  vf u1 = K_TO((vi)(w1 >> 8) + 1, vf) * 5.9604644775390625e-8f;
  vf u2 = K_TO((vi)(w2 >> 8), vf) * 5.9604644775390625e-8f;
  return k_sqrt(-2.0f * k_log(u1)) * k_cos(u2 * 6.28318530717958647692f);
}
