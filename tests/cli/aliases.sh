# Arguments that are one tensor: the results of the program's order, bit for bit, for both schedules, in orders
# that they allow, for any number of threads. All examples whose arguments can be one, and kernels that
# write what they read.
. "$ROOT/tests/cli/lib.sh"
rm -rf want out
tried=0
run() { # file[::kernel] values...
    tried=$((tried + 1))
    rm -rf want
    "$NKI" run "$@" --raw -q --out want >/dev/null 2>.err || { failed=1; echo "FAILED: run $*"; cat .err; return; }
    for o in '--threads 2' '--threads 8' '--schedule=list' '--schedule=list --threads 8' '--order 1 --threads 1' \
        '--order 2 --threads 2' '--order 3 --threads 8' '--order 4 --schedule=list' '--order 5 --schedule=list --threads 8'; do
        rm -rf out
        "$NKI" run "$@" --verify --raw -q --out out $o >/dev/null 2>.err || { failed=1; echo "FAILED: run $* $o"; cat .err; return; }
        [ "$(ls out)" = "$(ls want)" ] && [ "$(ls out)" ] || { failed=1; echo "FAILED: $* $o: other outputs"; }
        for f in want/*; do
            cmp "$f" "out/${f#want/}" || { failed=1; echo "FAILED: $* $o"; }
        done
    done
}

# Of each example: any two arguments of one type and shape as one tensor (gather_scatter: as many rows as the
# sources have).
for file in "$ROOT"/examples/*.nki; do
    sed -n 's/^# try: //p' "$file" | sed 's/height=50/height=64/' | tr ' ' '\n' | awk -F'[=:]' '
        { all[NR] = $0; name[NR] = $1; type[NR] = $2 ~ /\[/ ? $2 : NR }
        END { for (i = 1; i <= NR; i++) for (j = i + 1; j <= NR; j++) if (type[i] == type[j]) {
            for (k = 1; k <= NR; k++) printf "%s ", k == j ? name[j] "=" name[i] : all[k]; print "" } }' >pairs.txt
    while read -r values; do
        run "$file" $values
    done <pairs.txt
done
[ "$tried" -ge 6 ] || { failed=1; echo "FAILED: only $tried examples have arguments that can be one"; }
# Of those whose arguments have other shapes above: shapes that are equal.
for k in 1_naive 2_tiled 3_hoisted 4_blocked 5_double_buffered; do
    case $k in 1*) n=64 ;; *) n=192 ;; esac
    run "$ROOT/examples/matmul_$k.nki" "lhs_t=float32[$n,$n]:randn" rhs=lhs_t
done
run "$ROOT/examples/flash_attention.nki" 'q=float32[64,64]:randn' k=q v=q

# What is written is read through another name.
for k in shift reread; do
    run "$ROOT/tests/cli/aliases.nki::$k" 'x=float32[40,8]:randn' y=x
done
for values in 'y=x z=x' 'y=x z=float32[40,8]:randn,seed=2' 'y=float32[40,8]:randn,seed=2 z=y' 'y=float32[40,8]:randn,seed=2 z=x'; do
    run "$ROOT/tests/cli/aliases.nki::mix" 'x=float32[40,8]:randn' $values
done
# By hand: rows 4 to 7 are rows 0 to 3 plus one, and so on.
check 0 'x \[12, 1\] float32
\[\[0\],
 \[1\],
 \[2\],
 \[3\],
 \[1\],
 \[2\],
 \[3\],
 \[4\],
 \[2\],
 \[3\],
 \[4\],
 \[5\]\]*' '' "$NKI" run "$ROOT/tests/cli/aliases.nki::shift" 'x=float32[12,1]:arange' y=x --print
# One tensor or two with the same contents: the same, where nothing is written.
same "$("$NKI" run "$add" 'a=float32[3,4]:randn,seed=1' b=a --print)" "$("$NKI" run "$add" 'a=float32[3,4]:randn,seed=1' 'b=float32[3,4]:randn,seed=1' --print)"
check 0 '' '' "$NKI" compile "$add" 'a=float32[3,4]' b=a -q -o add.neff
same "$("$NKI" run "$add" 'a=float32[3,4]:randn' b=a --print)" "$("$NKI" run add.neff 'a=float32[3,4]:randn' b=a --print)"
check 2 '' "nki: 'a=b': 'b' has to stand before it" "$NKI" run "$add" a=b 'b=float32[3,4]:randn'
check 1 '' '*error\[name_error\]*' "$NKI" run "$add" 'a=float32[3,4]:randn' b=c
done_testing
