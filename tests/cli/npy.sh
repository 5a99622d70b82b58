# .npy in and out: versions, byte orders, column-major order, types, 0 dimensions; what a run writes.
. "$ROOT/tests/cli/lib.sh"
rm -rf ./*.npy out
sum() { # file type -> bytes of 0 + file
    rm -rf out
    check 0 '' '' "$NKI" run "$add" "a=$2@$1" "b=$2[2,3]:zeros" --out out
    "$NPYTOOL" show out/out0.npy
}
f4="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
000000000000803f0000004000004040000080400000a040"
"$NPYTOOL" make v1.npy
"$NPYTOOL" make v2.npy version=2
"$NPYTOOL" make v3.npy version=3
"$NPYTOOL" make big.npy 'descr=>f4'
"$NPYTOOL" make f8.npy 'descr=<f8'
"$NPYTOOL" make f2.npy 'descr=<f2'
"$NPYTOOL" make i8.npy 'descr=<i8'
"$NPYTOOL" make i2.npy 'descr=>i2'
"$NPYTOOL" make u1.npy 'descr=|u1'
for f in v1 v2 v3 big f8 f2 i8 i2 u1; do
    same "$f4" "$(sum $f.npy float32)"
    same "$f4" "$(sum $f.npy bfloat16)"
    same "$f4" "$(sum $f.npy f8e4m3)"
done
# Column-major: elements 0 1 2 3 4 5 run down the columns.
"$NPYTOOL" make fortran.npy fortran
same "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
0000000000000040000080400000803f000040400000a040" "$(sum fortran.npy float32)"
# The file's own type, and stored bits.
rm -rf out
check 0 '' '' "$NKI" run "$add" a=@f2.npy b=float16[2,3]:zeros --out out
same "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }
0000003c0040004200440045" "$("$NPYTOOL" show out/out0.npy)"
check 0 '' '' "$NKI" run "$add" a=bf16@v1.npy b=bf16[2,3]:zeros --out out --raw
same "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }
0000803f004040408040a040" "$("$NPYTOOL" show out/out0.npy)"
check 0 '' '' "$NKI" run "$add" a=float8_e5m2@v1.npy b=float8_e5m2[2,3]:zeros --out out --raw
same "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }
003c40424445" "$("$NPYTOOL" show out/out0.npy)"
# Positional values, --print, one line an output.
check 0 'out0 \[2, 3\] float32 min 0 max 5 mean 2.5 nan 0' '' "$NKI" run "$add" float32@v1.npy 'float32[2,3]:zeros'
check 0 'out0 \[2, 3\] float32
\[\[1, 2, 3\],
 \[4, 5, 6\]\]' '' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:ones' --print
check 0 '' '' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:ones' -q
check 0 '*
time parse_ms=[0-9]*specialize_ms=[0-9]*compile_ms=[0-9]*load_ms=[0-9]*run_ms=[0-9]*cache=miss repeat=3*' '' \
    "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:ones' --time --repeat 3 --warmup 1
# Generators are the same everywhere and differ by parameter.
check 0 'out0*
\[\[10, 11, 12\],
 \[13, 14, 15\]\]' '' "$NKI" run "$add" 'a=int32[2,3]:arange' 'b=int32[2,3]:full(10)' --print
check 0 'out0*
\[\[2, 1, 1\],
 \[1, 2, 1\]\]' '' "$NKI" run "$add" 'a=float32[2,3]:eye' 'b=float32[2,3]:ones' --print
check 0 'out0 \[100, 100\] float32 min -[0-9]* max [0-9]* mean [-0]*' '' "$NKI" run "$add" 'a=float32[100,100]:randn' 'b=float32[100,100]:zeros'
check 0 'out0 \[100, 100\] int32 min 3 max 6 mean 4.[45]* nan 0' '' "$NKI" run "$add" 'a=int32[100,100]:randint(3,7)' 'b=int32[100,100]:zeros'
# Comparisons: status 3 and what differs.
check 0 '1 as expected*' '' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out0=v1.npy
check 3 '' 'nki: out0: 6 of 6 elements differ from v1.npy*first at \[0, 0\]: 1, expected 0*' \
    "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:ones' --expect out0=v1.npy
check 0 '1 as expected*' '' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:ones' --expect out0=v1.npy --atol 1
check 3 '' 'nki: out0: type float32, but f8.npy has float64' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out0=f8.npy
"$NPYTOOL" make other.npy shape=3,2
check 3 '' 'nki: out0: shape \[2, 3\], but other.npy has \[3, 2\]' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out0=other.npy
"$NPYTOOL" make nan.npy bytes=0000c07f0000803f0000004000004040000080400000a040
check 3 '' 'nki: out0: 1 of 6 elements*NaN on one side: 1' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out0=nan.npy --atol 1e9
check 0 '1 as expected*' '' "$NKI" run "$add" a=float32@nan.npy 'b=f32[2,3]:zeros' --expect out0=nan.npy
check 3 '' 'nki: --expect out1: the kernel wrote no such tensor; there is out0' "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out1=v1.npy
check 4 '' "nki: cannot read 'gone.npy'*" "$NKI" run "$add" a=float32@v1.npy 'b=f32[2,3]:zeros' --expect out0=gone.npy
# Two kernels on the same inputs.
check 0 '1 outputs agree*' '' "$NKI" diff "$add" "$add::vector_add" a=float32@v1.npy 'b=f32[2,3]:randn'
done_testing
