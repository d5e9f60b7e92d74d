#!/usr/bin/env bash
# Examples compiled for GPUs, on a machine that needs none: with NVRTC for several architectures, cold
# and from the cache to the same bytes; two mltc at once with one cache; with clang to PTX that ptxas
# takes, where there is a ptxas; and with NVRTC found in a folder of its own, as pip lays it out.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
export XDG_CACHE_HOME=$scratch/cache
mkdir cache

# For what does not depend on the kernels: few, quickly compiled.
cat >few.graph <<'GRAPH'
model few(x: f32[4,8], y: f32[4,8]) { loss mse(relu(linear(x, 8)), y) }
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 3 }
GRAPH

# --- clang needs no toolkit
for out in by-clang again; do
  MLTC_NVRTC=/nonexistent "$mltc" "$root/examples/digits_mlp.graph" --target=cuda \
    --cuda-compiler=clang --keep=clang -o "$out" >said.txt 2>&1 || {
    cat said.txt
    fail "--cuda-compiler=clang"
  }
done
same by-clang again "programs by clang, without and with the cache,"
ptxas=$(command -v ptxas || find -L /usr/local -maxdepth 3 -path '*/cuda*/bin/ptxas' 2>find.txt | head -n 1)
if [ -n "$ptxas" ]; then
  for ptx in clang/*.ptx; do
    for arch in sm_80 sm_90a; do
      "$ptxas" -arch=$arch "$ptx" -o taken.cubin >said.txt 2>&1 || {
        cat said.txt
        fail "ptxas does not take $ptx for $arch"
      }
    done
  done
fi

"$mltc" few.graph --target=cuda --emit=ptx --no-cache -o all.ptx 2>said.txt || {
  grep -q "needs NVRTC" said.txt && skip "no NVRTC; clang's part passed"
  cat said.txt
  fail "--emit=ptx"
}
grep -q '^\.target sm_80' all.ptx || fail "no PTX for sm_80 and newer"

# --- vectors whose places the plan fixes: always 16 bytes, without asking at run time; copies, too
cat >rows.ir <<'IR'
mltc-ir 1
module rows

state x : f32[64,256] role=buffer
state y : f32[64,256] role=buffer
state p : f32[66,384] role=buffer
state c : f32[64,640] role=buffer
state step : i64[] role=counter

func init {
}

func step {
  %x = read @x : f32[64,256]
  %s = sum %x {axes=[1]} : f32[64,1]
  %b = broadcast %s : f32[64,256]
  %d = sub %x, %b : f32[64,256]
  write @y, %d
  %p = pad %x {lo=[1,0], hi=[1,128], value=0} : f32[66,384]
  write @p, %p
  %q = read @p : f32[66,384]
  %z = slice %q {start=[0,0], stop=[64,384], step=[1,1]} : f32[64,384]
  %c = concat %x, %z {axis=1} : f32[64,640]
  write @c, %c
}
IR
"$mltc" rows.ir --target=cuda:sm_80 --emit=ptx -o rows.ptx || fail "rows.ir"
for wide in 'ld\.global\.v4' 'st\.global\.v4'; do
  grep -q "$wide" rows.ptx || fail "no $wide in rows of 256"
done
! grep -E '(ld|st)\.global\.(f32|b32|u32)' rows.ptx || fail "single elements in rows of 256"
! grep 'mul\.hi\.[su]64' rows.ptx || fail "divisions of 64 bits in copies"

# --- kernels of one launch share one array between slices: what each of them had of its own was more than a
# block has
{
  echo 'model many(x: f32[64,16]) {'
  sums='mean(x)'
  for rows in 12 24 48 96 200; do
    for op in max min sum; do
      printf '  param %s%d: f32[%d,512] = uniform(1)\n' $op $rows $rows
      sums+=" + mean($op($op$rows, axis=0) ** 2)"
    done
  done
  printf '  loss %s\n}\n' "$sums"
  sed 1d few.graph | sed 's/"x.npy", "y.npy"/"x.npy"/'
} >slices.graph
"$mltc" slices.graph --target=cuda:sm_80 -o slices || fail "sums of many lengths in one launch"

# --- likewise what the threads of a row sum through: 512 bytes, however many kernels share the launch
{
  printf 'model rows(x: f32[8,1024]) {\n  param w: f32[1024] = ones\n'
  for columns in 516 520 524; do
    echo "  output o$columns = max(x[:, 0:$columns], axis=1)"
  done
  printf '  loss mean(x * w)\n}\n'
  sed 1d few.graph | sed 's/"x.npy", "y.npy"/"x.npy"/'
} >rows.graph
"$mltc" rows.graph --target=cuda:sm_80 --emit=resources -o rows.txt || fail "rows of many lengths in one launch"
grep -Eq '^  joint_copy +3 .* 256 +[0-9]+ +0\.5 ' rows.txt || fail "shared memory of rows in one launch: $(cat rows.txt)"

# --- a plan of more than 128 GiB: buffers that a joint's table cannot name have launches of their own
"$mltc" "$root/examples/char_gpt.graph" --target=cuda:sm_90a --precision=bf16 -D B=30 -D T=1024 -D C=1600 -D H=25 -D L=48 \
  -D V=50257 --emit=cuda -o huge.cu || fail "a plan of more than 128 GiB"

# --- every example for two architectures: the compilers have nothing to say, not even of spills. In the
# suite one of each kind, the largest for both; with MLTC_SLOW all of them.
for example in "$root"/examples/*.graph; do
  name=$(basename "$example" .graph)
  [[ -n "${MLTC_SLOW:-}" || $name =~ ^(mnist_mlp|mnist_cnn|char_gpt)$ ]] || continue
  archs=sm_80,sm_90a
  [[ -n "${MLTC_SLOW:-}" || $name == char_gpt ]] || archs=sm_90a
  "$mltc" "$example" --target=cuda:$archs --keep="kept-$name" -o "$name" || fail "$name"
  [ "$(stat -c %s "$name")" -le 3000000 ] || fail "$name has $(stat -c %s "$name") bytes, more than 3 MB"
  cat "kept-$name"/kernels_*.log >log.txt
  [ ! -s log.txt ] || {
    cat log.txt
    fail "the compiler warns of $name"
  }
done

# Likewise in bf16 where elements are copied one by one from windows of images.
for name in ${MLTC_SLOW:+mnist_cnn resnet20}; do
  "$mltc" "$root/examples/$name.graph" --target=cuda --precision=bf16 --keep="kept-$name-bf16" -o "$name-bf16" || fail "$name in bf16"
  cat "kept-$name-bf16"/kernels_*.log >log.txt
  [ ! -s log.txt ] || {
    cat log.txt
    fail "the compiler warns of $name in bf16"
  }
done

# GPT-2 at its full size: other tiles and longer rows than the example's own.
gpt2=(-D B=8 -D T=1024 -D C=768 -D H=12 -D L=12 -D V=50257)
for precision in ${MLTC_SLOW:+f32 tf32 bf16}; do
  "$mltc" "$root/examples/gpt2.graph" --target=cuda --precision="$precision" "${gpt2[@]}" --keep="kept-gpt2-$precision" -o gpt2 ||
    fail "GPT-2 in $precision"
  cat "kept-gpt2-$precision"/kernels_*.log >log.txt
  [ ! -s log.txt ] || {
    cat log.txt
    fail "the compiler warns of GPT-2 in $precision"
  }
done

# --- the report knows each of them (compiled already): registers, shared memory, occupancy and time on both
"$mltc" "$root/examples/char_gpt.graph" --target=cuda:sm_80,sm_90a --emit=resources -o report.txt || fail "--emit=resources"
awk '/^[a-z]+: [0-9]+ kernels/ { inside = 1; next }
  inside && /^  (loop|matmul|copy|scatter|attention|joint)_/ { rows++; if (NF != 14 && NF != 9) print "incomplete: " $0; if (/!/) print "spills: " $0 }
  inside && /^    (loop|matmul|copy|scatter|attention)_/ { rows++; if (NF != 4) print "incomplete: " $0 }
  END { if (rows < 60) print rows " kernels" }' report.txt >said.txt
[ ! -s said.txt ] || fail "--emit=resources: $(cat said.txt)"
grep -Eq '^  sm_90a \(H100 SXM\): at least [0-9.]+ us$' report.txt || fail "--emit=resources: no time for sm_90a"

# --- all parameters are updated in one launch; a step has no more launches than it had
[ "$(grep -Ec '^  joint_new +52 .* 256 ' report.txt)" = 1 ] || fail "char_gpt: not one row for 52 updates"
[ "$(grep -c 'launch(joint_new, ' kept-char_gpt/program.c)" = 1 ] || fail "char_gpt: updates are not in one launch"
! grep -q 'launch(loop_new' kept-char_gpt/program.c || fail "char_gpt: updates outside the one launch"
launches=$(sed -nE 's/^step: [0-9]+ kernels, ([0-9]+) launches, .*/\1/p' report.txt)
[ "${launches:-1000}" -le 140 ] || fail "char_gpt: ${launches:-no} launches in a step"

# --- cold, warm, without: the same bytes
build_few() { # OUT OPTION...
  local out=$1
  shift
  "$mltc" few.graph --target=cuda:sm_80,sm_90a -v "$@" -o "$out" 2>"$out.txt" || {
    cat "$out.txt"
    fail "$out"
  }
}
rm -r cache/mltc
build_few without --no-cache
[ ! -e cache/mltc ] || fail "--no-cache writes to the cache"
build_few first &
one=$!
build_few second # at the same time, into the same cache
wait "$one" || fail "two at once"
build_few warm
! grep -q -- --gpu-architecture= warm.txt || fail "compiled again, though it is in the cache"
for other in first second warm; do
  same without "$other" "programs without the cache and '$other'"
done
./warm info >info.txt
grep -q '^target *cuda:sm_80,sm_90a' info.txt || fail "info does not name the target"

# --- a damaged cache is as good as none
for entry in cache/mltc/*.image; do
  printf 'x' | dd of="$entry" bs=1 seek=200 conv=notrunc 2>dd.txt
done
build_few damaged
grep -q -- --gpu-architecture= damaged.txt || fail "damaged entries are used"
same without damaged "programs without the cache and with a damaged one"

# --- NVRTC where the wheels have it, and nowhere else
nvrtc=$(ldconfig -p | sed -nE 's/.*libnvrtc\.so\.[0-9]+ .*=> (.*)/\1/p' | head -n 1)
[ -n "$nvrtc" ] || nvrtc=$(find -L /usr/local -maxdepth 4 -path '*/cuda*/lib64/libnvrtc.so.1?' 2>find.txt | head -n 1)
if [ -n "$nvrtc" ]; then
  mkdir -p site-packages/nvidia/cu13/lib
  ln -s "$(dirname "$nvrtc")"/libnvrtc*.so.* site-packages/nvidia/cu13/lib
  MLTC_NVRTC=$scratch/site-packages build_few wheels --no-cache
  ./wheels info >info.txt
  grep -q '^target *cuda:sm_80,sm_90a' info.txt || fail "NVRTC in a folder of its own"

  # A cubin that ptxas made of the first architecture's PTX takes what NVRTC's own does.
  mkdir site-packages/nvidia/cu13/bin
  printf '#!/bin/sh\necho "release 1.0, an older one"\n' >site-packages/nvidia/cu13/bin/ptxas
  chmod +x site-packages/nvidia/cu13/bin/ptxas
  mlp=$root/examples/mnist_mlp.graph
  MLTC_NVRTC=$scratch/site-packages "$mltc" "$mlp" --target=cuda --no-cache --emit=resources -o by-nvrtc.txt
  "$mltc" "$mlp" --target=cuda --no-cache --emit=resources -o usual.txt
  grep -q sm_90a usual.txt || fail "--emit=resources does not speak of sm_90a"
  same by-nvrtc.txt usual.txt "what kernels take, with ptxas and without,"
fi
