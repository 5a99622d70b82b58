# What a run of a kernel does beyond its outputs: in-place tensors, printing, environment, dumps,
# limits, warnings, imports, containers.
. "$ROOT/tests/cli/lib.sh"
rm -rf ./*.nki ./*.npy ./*.neff out helpers dir
head='import nki
import nki.isa as nisa
import nki.language as nl
'
kernel() { printf '%s%s\n' "$head" "$2" >"$1"; }

kernel scale.nki '
@nki.jit
def scale(x, factor):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=y, src=tile)
    return y'
check 0 'out0 \[128, 512\] float32 min 0 max 131070 mean 65535 nan 0' '' \
    "$NKI" run scale.nki 'x=float32[128,512]:arange' factor=2.0
check 1 '' "scale.nki:8:12: error\[*256*128*" "$NKI" check scale.nki 'x=float32[256,512]' factor=2.0
check 0 '' '' "$NKI" check scale.nki 'x=float32[128,512]' factor=2.0
check 0 'scale.nki: ok' '' "$NKI" check -v scale.nki 'x=float32[128,512]' factor=2.0
check 1 '' '*error\[*factor*' "$NKI" run scale.nki 'x=float32[4,4]:ones'
check 1 '' '*error\[*' "$NKI" run scale.nki 'x=float32[4,4]:ones' factor=2.0 extra=1
check 1 '' '<value of factor>:1:*: error*' "$NKI" run scale.nki 'x=float32[4,4]:ones' 'factor=2 +'
check 1 '' '*error\[kernel_name_unknown\]*' "$NKI" run scale.nki::other 'x=float32[4,4]:ones' factor=1

# In place: NAME.npy.
kernel inplace.nki '
@nki.jit
def bump(x, y):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=x, src=tile)'
check 0 'x \[2, 3\] float32 min 1 max 1 mean 1 nan 0 (written in place)' '' \
    "$NKI" run inplace.nki 'float32[2,3]:zeros' 'y=float32[2,3]:zeros' --repeat 3
check 0 '' '' "$NKI" run inplace.nki 'x=float32[2,3]:zeros' 'y=float32[2,3]:zeros' --out out --warmup 2
same 'x.npy' "$(ls out)"

# print, environment, nothing of the caller's environment.
kernel say.nki '
import os
@nki.jit
def say():
    print("mode", os.environ.get("MODE", "none"))'
check 0 'mode none' '' env MODE=outer "$NKI" check say.nki
check 0 'mode inner' '' "$NKI" check say.nki --env MODE=inner

# Limits.
kernel forever.nki '
@nki.jit
def forever():
    while True:
        pass'
check 1 '' '*error\[step_limit\]*' "$NKI" check forever.nki --step-limit 10000
kernel grow.nki '
@nki.jit
def grow():
    x = []
    while True:
        x.append("some text" * 100 + str(len(x)))'
check 4 '' "nki: compiling 'grow.nki' needs more than the memory limit of 16 MiB" \
    "$NKI" check grow.nki --memory-limit 16M

# Warnings.
kernel warn.nki '
@nki.jit
def warn():
    for i in nl.affine_range(2):
        pass'
check 0 '' 'warn.nki:*: warning\[deprecated\]*' "$NKI" check warn.nki
check 0 '' '' "$NKI" check warn.nki -Wno-deprecated
check 1 '' 'warn.nki:*: error\[deprecated\]*' "$NKI" check warn.nki -Werror
check 1 '' '*error\[deprecated\]*' "$NKI" check warn.nki -Werror=deprecated

# Targets.
kernel target.nki '
@nki.jit
def target():
    print(nisa.get_nc_version())'
check 0 '*gen3*' '' "$NKI" check target.nki
check 0 '*gen2*' '' "$NKI" check target.nki --target trn1
check 0 '*gen4*' '' env NEURON_PLATFORM_TARGET_OVERRIDE=trn3 "$NKI" check target.nki
check 0 '*gen2*' '' env NEURON_PLATFORM_TARGET_OVERRIDE=trn3 "$NKI" check target.nki --target gen2

# Dumps.
check 0 'kernel*' '' "$NKI" check scale.nki 'x=float32[4,4]' factor=2.0 --dump=ir --stop-after=ir
check 0 '# ast*# ir*# placed*# sched*queue*' '' "$NKI" check scale.nki 'x=float32[4,4]' factor=2.0 --dump=ast,ir,placed,sched
check 0 '' '' "$NKI" run scale.nki 'x=float32[4,4]:ones' factor=2.0 --stop-after=ir

# Imports.
mkdir -p helpers/src dir
printf 'def twice(n):\n    return 2 * n\n' >helpers/src/tools.py
head -c 3000 /dev/urandom >dir/noise.py
kernel use.nki '
from tools import twice
@nki.jit
def use():
    print(twice(21))'
check 0 '42' '' "$NKI" check use.nki -I helpers
check 1 '' '*error\[*tools*' "$NKI" check use.nki
kernel loud.nki '
from noise import x
@nki.jit
def use():
    print(x)'
check 1 '' "*error\[import_unreadable\]: cannot import 'noise': 'dir/noise.py' is a binary file*" "$NKI" check loud.nki -I dir

# Containers: the same bytes each time, in another folder too.
check 0 '' '' "$NKI" compile scale.nki 'x=bfloat16[16,16]' factor=2.0 -o a.neff
mkdir -p other && cp scale.nki other/
(cd other && "$NKI" compile scale.nki 'x=bf16[16,16]' factor=2.0 -o ../b.neff)
"$NKI" compile "$PWD/other/scale.nki" 'x=bf16[16,16]' factor=2.0 -o - >c.neff
cmp a.neff b.neff || failed=1
cmp a.neff c.neff || failed=1
check 4 '' "nki: cannot write 'gone/a.neff': No such file or directory" \
    "$NKI" compile scale.nki 'x=bfloat16[16,16]' factor=2.0 -o gone/a.neff

# A launch of two: each program does its half.
kernel halves.nki '
@nki.jit
def halves(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    first = nl.program_id(0) * rows
    tile = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[first:first + rows, :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(nl.program_id(0)))
    nisa.dma_copy(dst=y[first:first + rows, :], src=tile)
    return y'
check 0 'out0 \[4, 2\] float32
\[\[0, 0\],
 \[0, 0\],
 \[1, 1\],
 \[1, 1\]\]' '' "$NKI" run halves.nki 'x=float32[4,2]:zeros' --grid 2 --print
# A collective of several ranks: compiled for one of them, timed, not run.
kernel ranks.nki '
@nki.jit
def ranks(x):
    y = nl.ndarray((2 * x.shape[0], x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(t, x)
    nki.collectives.all_gather([t], [y], nki.collectives.ReplicaGroup([[0, 1], [2, 3]]), 0)
    print("rank", nki.collectives.rank_id())
    return y'
sed -i '1i import nki.collectives' ranks.nki
check 0 'rank 2' '' "$NKI" compile ranks.nki 'x=float32[4,2]' --rank 2 --verify -o ranks.neff
check 0 '*nki.collectives.all_gather(*' '' "$NKI" inspect ranks.neff
check 0 '*total_time*' '' "$NKI" profile ranks.neff
check 2 '' 'nki: *ranks.nki:*: nki.collectives.all_gather of several ranks: nothing connects devices here*' "$NKI" run ranks.neff 'x=float32[4,2]:zeros'
check 1 '' '*: all_gather: rank 4, which this program is for, is in no group of \[\[0, 1\], \[2, 3\]\]*' "$NKI" check ranks.nki 'x=float32[4,2]' --rank 4
# A mistake in an argument's value points at the value.
cat >value.nki <<'END'
import nki
import nki.language as nl

@nki.jit
def kernel(x, f):
    return x
END
check 1 '' '<value of f>:1:4: error\[name_error\]: name ?foo? is not defined*' "$NKI" check value.nki 'x=float32[2,2]' 'f=1, foo'
check 0 'out0 \[2, 2\] float8_e5m2_x4*' '' "$NKI" run --target trn3 value.nki 'x=float8_e5m2_x4[2,2]:zeros' f=1
check 2 '' '*packed words can only be zeros; give a file*' "$NKI" run --target trn3 value.nki 'x=float8_e5m2_x4[2,2]:ones' f=1
done_testing
