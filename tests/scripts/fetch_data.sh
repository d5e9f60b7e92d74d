#!/usr/bin/env bash
# scripts/fetch-data: files with the right checksum are kept, others fetched anew; what has a wrong one
# never gets its final name. The network is a curl of our own that copies from a folder.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_data

mkdir bin mirror
cat >bin/curl <<'CURL'
#!/usr/bin/env bash
while [ $# -gt 1 ]; do
  [ "$1" != -o ] || to=$2
  shift
done
echo "$1" >>"$CURL_LOG"
cp "$CURL_FROM/$(basename "$1")" "$to"
CURL
chmod +x bin/curl
export CURL_LOG=$scratch/log.txt CURL_FROM=$scratch/mirror PATH=$scratch/bin:$PATH
cp "$data"/*ubyte.gz mirror
cp "$data/tinyshakespeare.txt" mirror/input.txt # as the public source calls it
cp "$data/tinyshakespeare.txt" mirror

"$root/scripts/fetch-data" mnist shakespeare >said.txt
[ "$(grep -c ': fetched$' said.txt)" = 5 ] || fail "not five files: $(cat said.txt)"
same "$data/train-images-idx3-ubyte.gz" data/train-images-idx3-ubyte.gz "images"
same "$data/tinyshakespeare.txt" data/tinyshakespeare.txt "texts"
! grep -qv '^https://' "$CURL_LOG" || fail "a source without https"

: >"$CURL_LOG"
echo broken >data/tinyshakespeare.txt
"$root/scripts/fetch-data" mnist shakespeare data >said.txt
[ "$(grep -c ': there already$' said.txt)" = 4 ] || fail "good files are fetched again"
[ "$(wc -l <"$CURL_LOG")" = 1 ] || fail "more than the broken file is fetched"

MLTC_DATA_MIRROR=https://mirror.example/x "$root/scripts/fetch-data" shakespeare own >said.txt
[ "$(tail -n 1 "$CURL_LOG")" = https://mirror.example/x/tinyshakespeare.txt ] || fail "mirror"

echo forged >mirror/input.txt
code=0
"$root/scripts/fetch-data" shakespeare bad >said.txt 2>&1 || code=$?
[ $code = 1 ] || fail "a wrong checksum gives exit code $code"
grep -q 'right checksum' said.txt || fail "a wrong checksum is not named"
[ -z "$(ls bad)" ] || fail "a wrong file stays: $(ls bad)"
for wrong in "" mnst "mnist a b" --help; do
  code=0
  # shellcheck disable=SC2086
  "$root/scripts/fetch-data" $wrong >said.txt 2>&1 || code=$?
  [ $code = 2 ] || fail "fetch-data $wrong: exit code $code, not 2"
done
