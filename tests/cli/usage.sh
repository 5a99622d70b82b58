# Wrong usage: status 2 and a sentence on standard error, nothing on standard output.
. "$ROOT/tests/cli/lib.sh"
check 2 '' 'usage: nki COMMAND*' "$NKI"
check 0 'usage: nki COMMAND*check*run*compile*diff*isa*explain*Exit status*' '' "$NKI" --help
check 0 'nki [0-9]*.[0-9]*.[0-9]*' '' "$NKI" --version
check 2 '' "nki: there is no command 'frob'*" "$NKI" frob
for c in check run compile profile diff inspect bindgen isa explain completion help; do
    check 0 "usage: nki $c *" '' "$NKI" $c --help
    check 0 "usage: nki $c *" '' "$NKI" help $c
    check 2 '' "nki: $c has no option '--frob'; see nki $c --help" "$NKI" $c --frob
done
check 2 '' "nki: there is no command 'chek'; did you mean check?" "$NKI" chek
check 2 '' 'nki: the command comes before its options: nki COMMAND -q ...' "$NKI" -q run
check 2 '' "nki: there is no command 'frob'*" "$NKI" help frob
check 2 '' "nki: run has no option '--schedul=list'; did you mean --schedule?" "$NKI" run "$add" --schedul=list
check 2 '' "nki: check has no option '--out' (nki run has); see nki check --help" "$NKI" check "$add" --out x
check 2 '' 'nki: option --print takes no value' "$NKI" run "$add" --print=yes
check 2 '' "nki: option --out wants a value: DIR" "$NKI" run "$add" --out
check 2 '' 'nki: -W wants a warning*' "$NKI" run "$add" -W
check 2 '' "nki: there is no completion for 'fish'*" "$NKI" completion fish
for c in check run compile profile diff inspect bindgen; do
    check 2 '' "nki: $c wants *" "$NKI" $c
done
check 2 '' 'nki: diff wants two kernels*' "$NKI" diff "$add"
# Behind -- there are no options: -x is taken for the file.
check 4 '' "nki: cannot read '-x': No such file or directory" "$NKI" check -- -x
check 2 '' 'nki: compile wants -o OUT.neff' "$NKI" compile "$add" 'a=float32[2,2]' 'b=float32[2,2]'
check 2 '' 'nki: option --target wants a value: trn1|trn2|trn3' "$NKI" run "$add" --target
check 2 '' 'nki: unknown target*trn1*trn2*trn3*' "$NKI" run "$add" --target trn9
check 2 '' 'nki: --grid wants a whole number from 1 to 2, not *' "$NKI" run "$add" --grid 3
check 2 '' 'nki: --repeat wants a whole number*' "$NKI" run "$add" --repeat=-1
check 2 '' 'nki: --rtol wants a number*' "$NKI" run "$add" --rtol x
check 2 '' 'nki: --color takes auto, always, never*' "$NKI" run "$add" --color=blue
check 2 '' 'nki: --diag-format takes text, short, json*' "$NKI" run "$add" --diag-format=xml
check 2 '' "nki: --dump: there is no stage 'foo'; the stages are ast, ir, placed, sched" \
    "$NKI" check "$add" --dump=ast,foo
check 2 '' "nki: --stop-after: there is no stage 'x'*" "$NKI" check "$add" --stop-after x
check 2 '' 'nki: --env wants NAME=VALUE*' "$NKI" run "$add" --env FOO
check 2 '' 'nki: --memory-limit wants bytes*' "$NKI" run "$add" --memory-limit 3X
check 2 '' 'nki: unknown warning*' "$NKI" run "$add" -Wfrobnicate a=1 b=1
check 2 '' "*should be FILE or FILE::KERNEL" "$NKI" run "$add::"

# Values.
check 2 '' "*has no data; add :randn*" "$NKI" run "$add" 'a=float32[2,2]' 'b=float32[2,2]'
check 2 '' "*there is no type 'float64'" "$NKI" run "$add" 'a=float64[2,2]:randn' 'b=1'
check 2 '' "*there is no type 'float12'" "$NKI" run "$add" a=float12@x.npy b=1
check 2 '' '*the generators are zeros ones full*' "$NKI" run "$add" 'a=float32[2,2]:normal' b=1
check 2 '' '*wants more numbers*' "$NKI" run "$add" 'a=float32[2,2]:full' b=1
check 2 '' '*does not take these numbers' "$NKI" run "$add" 'a=float32[2,2]:zeros(1)' b=1
check 2 '' '*lo below hi' "$NKI" run "$add" 'a=int32[2,2]:randint(3,3)' b=1
check 2 '' '*seed= wants a whole number' "$NKI" run "$add" 'a=float32[2,2]:randn,seed=x' b=1
check 2 '' '*nothing but ,seed=N*' "$NKI" run "$add" 'a=float32[2,2]:randn,sed=1' b=1
check 2 '' "nki: 'a' is given twice" "$NKI" run "$add" a=1 a=2
check 2 '' "*has no name but stands after a value that has one" "$NKI" run "$add" a=1 2
check 2 '' "*should be TYPE*" "$NKI" run "$add" 'a=float32[2,x]:randn'
check 2 '' "*at most 8 dimensions" "$NKI" run "$add" 'a=float32[1,1,1,1,1,1,1,1,1]:ones'

# isa and explain.
check 2 '' "nki: there is no instruction 'frob'; nki isa lists them" "$NKI" isa frob
check 2 '' "nki: there is no instruction 'nisa.nc_matmull'; did you mean nc_matmul?" "$NKI" isa nisa.nc_matmull
check 2 '' "nki: there is no diagnostic 'bad_dedant'; did you mean bad_dedent?" "$NKI" explain bad_dedant
check 0 'error\[bad_dedent\]*' '' "$NKI" explain 'error[bad_dedent]'
check 0 '*bad_dedent*' '' "$NKI" explain
check 0 'nki.isa.tensor_tensor(dst, data1, data2, op*Vector, GpSimd*status*' '' "$NKI" isa nisa.tensor_tensor
check 0 'instruction*nc_matmul*of*done' '' "$NKI" isa
case $("$NKI" isa) in *several*) echo 'FAILED: a set of engines without a name'; failed=1 ;; esac
done_testing
