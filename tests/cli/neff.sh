# Containers: compile, inspect, run; same bytes; damage.
. "$ROOT/tests/cli/lib.sh"
ex=$ROOT/examples
values='a=float32[200,300] b=float32[200,300]'
check 0 '' '' "$NKI" compile "$add" $values -o add.neff
check 2 '' 'nki: inspect wants one .neff file*' "$NKI" inspect
check 4 '' "nki: cannot read 'none.neff': *" "$NKI" inspect none.neff
check 0 'kernel vector_add
target trn2
launch core 0 of 1
file version 2, * bytes*
sections*neff.json*tensors
  %0 "a" float32\[200, 300\] hbm param=0 "a"*sbuf placed=(0, 0)*
code
vector_add.nki:*: nisa.dma_copy(dst=a_tile, src=a\[slab, :\])
  @0      DMA.dma_copy dst=%*Vector.tensor_tensor*return %*streams
semaphore s0 DMA.load -> Vector*
queue Vector 2
  @2 tensor_tensor wait s0>=16 signal s1+=1*' '' "$NKI" inspect add.neff
check 0 'SBUF: * of 229376 bytes a partition reached, 4 tensors; most in use: 2400 at @1*|aaaa....|*
  a %3  float32\[128, 300\] partitions 0-127 bytes 0-1199 @0-@3  vector_add.nki:*PSUM: 0 of 16384*' '' \
    "$NKI" inspect --memory add.neff
check 0 '<svg xmlns=*<rect x="70.0"*<title>%3 *float32\[128, 300\], bytes 0-1199, @0-@3, vector_add.nki:*</svg>' '' \
    "$NKI" inspect --memory=svg add.neff
check 2 '' 'nki: --memory takes text, svg*' "$NKI" inspect --memory=png add.neff

# Running the file: by name, in order, and what does not fit.
data='a=float32[200,300]:randn b=float32[200,300]:randn'
same "$("$NKI" run "$add" $data)" "$("$NKI" run add.neff $data)"
check 0 'out0 \[200, 300\] float32 min 2 max 2 mean 2 nan 0' '' \
    "$NKI" run add.neff 'float32[200,300]:ones' 'float32[200,300]:ones'
check 2 '' "nki: parameter 'b' of vector_add got float32\[200, 301\]; it was compiled for float32\[200, 300\]" \
    "$NKI" run add.neff 'a=float32[200,300]:ones' 'b=float32[200,301]:ones'
check 2 '' "nki: no tensor is given for parameter 'b'*" "$NKI" run add.neff 'a=float32[200,300]:ones'
check 2 '' "nki: vector_add has no tensor parameter 'c'*" "$NKI" run add.neff 'c=float32[200,300]:ones'
check 2 '' "nki: '3' is no tensor*" "$NKI" run add.neff 3 'b=float32[200,300]:ones'
check 2 '' 'nki: vector_add takes 2 tensors, not 3' "$NKI" run add.neff 'float32[200,300]:ones' 'float32[200,300]:ones' 'float32[1]:ones'
check 2 '' 'nki: *the program is for trn2; the context is for trn1*' "$NKI" run add.neff --target trn1 $data
check 0 '' '' "$NKI" compile "$add" $values --target trn1 -o add1.neff
check 0 'out0 *' '' "$NKI" run add1.neff $data # the file says for which
check 0 'kernel vector_add
target trn1*' '' "$NKI" inspect add1.neff

# In place: named by the parameter, also without names.
cat >half.nki <<'END'
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def half(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=x, src=t)
END
check 0 '' '' "$NKI" compile half.nki 'float32[4,2]' -o half.neff
check 0 'x \[4, 2\] float32 min 0.5*(written in place)' '' "$NKI" run half.neff 'float32[4,2]:ones'

# A launch of two: both programs are in the file.
cp "$ROOT/tests/cli/cores.nki" .
check 0 '' '' "$NKI" compile cores.nki 'x=float32[4,3]' --grid 2 -o cores.neff
check 0 '*launch core 0 of 2*launch core 1 of 2*' '' "$NKI" inspect cores.neff
same "$("$NKI" run cores.nki 'x=float32[4,3]:arange' --grid 2 --print)" \
    "$("$NKI" run cores.neff 'x=float32[4,3]:arange' --print)"
size=$(wc -c <cores.neff)
head -c $((size / 2)) cores.neff >one.neff
check 4 '' 'nki: *one program of a launch of 2, which cannot run alone' "$NKI" run one.neff 'x=float32[4,3]:arange'
check 4 '' "nki: 'bad.neff': offset *" sh -c "
    cp cores.neff bad.neff && printf '\377' | dd of=bad.neff bs=1 seek=$((size - 2000)) conv=notrunc 2>/dev/null
    exec '$NKI' inspect bad.neff"

# Same source, same bytes: another process, locale, folder, way to name the file.
for l in C POSIX C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8; do
    LC_ALL=$l "$NKI" compile "$add" $values -o again.neff && cmp add.neff again.neff || failed=1
done
here=$(pwd)
(cd "$ex" && "$NKI" compile vector_add.nki $values -o "$here/again.neff") && cmp add.neff again.neff || failed=1
mkdir -p elsewhere && cp "$add" elsewhere/vector_add.nki
(cd elsewhere && TZ=Asia/Tokyo "$NKI" compile ./vector_add.nki $values -o ../again.neff) && cmp add.neff again.neff ||
    failed=1
attn="$ex/flash_attention.nki"
"$NKI" compile "$attn" $(sed -n 's/^# try: //p' "$attn") --schedule=list -o 1.neff &&
    "$NKI" compile "$attn" $(sed -n 's/^# try: //p' "$attn") --schedule=list --verify -o 2.neff && cmp 1.neff 2.neff || failed=1

# Damage.
for n in 0 1 8 100 1023 1024 1500 5000 20000; do
    head -c $n add.neff >cut.neff
    check 4 '' "nki: 'cut.neff': *" "$NKI" inspect cut.neff
    check 4 '' "nki: 'cut.neff': *" "$NKI" run cut.neff $data
done
for at in 0 9 17 25 33 41 45 65 81 90 130 600 1100 3000 5000 12000 20000 22000; do
    cp add.neff bad.neff
    printf '\245' | dd of=bad.neff bs=1 seek=$at conv=notrunc 2>/dev/null
    check 4 '' "nki: 'bad.neff': offset *" "$NKI" inspect bad.neff
    check 4 '' "nki: 'bad.neff': offset *" "$NKI" run bad.neff $data
done
check 4 '' "nki: 'half.nki.neff': the file ends at byte *" sh -c \
    "cp half.nki half.nki.neff; exec '$NKI' run half.nki.neff"

# The file that docs/neff.md takes apart: its bytes are those of the page (".." there: any).
page=$ROOT/docs/neff.md
mkdir -p page
sed -n '/^`add.nki`, compiled by/,/^The file has/s/^    //p' "$page" >page/add.nki
check 0 '' '' "$NKI" compile page/add.nki 'a=float32[128,512]' 'b=float32[128,512]' -o page/add.neff
grep -q "^The file has $(wc -c <page/add.neff) bytes" "$page" || { failed=1; echo 'FAILED: docs/neff.md: other length'; }
{
    od -An -v -tx1 page/add.neff
    sed -n 's/^    \([0-9a-f]\{8\}\): \([0-9a-f. ]\{39\}\).*/@\1 \2/p' "$page"
} | awk '
    function number(hex, i, n) {
        for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
        return n
    }
    !/^@/ { for (i = 1; i <= NF; i++) byte[n++] = $i; next }
    {
        at = number(substr($1, 2)); lines++; want = ""
        for (i = 2; i <= NF; i++) want = want $i
        for (i = 0; 2 * i < length(want); i++) {
            w = substr(want, 2 * i + 1, 2)
            if (w != ".." && w != byte[at + i]) {
                printf "FAILED: docs/neff.md: %s, byte %d: %s, the file has %s\n", $1, i, w, byte[at + i]
                bad = 1
            }
        }
    }
    END { exit bad || lines < 40 }' || failed=1
done_testing
