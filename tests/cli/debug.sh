# The debugger: sessions/NAME.nki answered by NAME.commands, whose first line holds the options, must read as
# NAME.session, from the source and from a compiled file alike. NKI_GOLDEN_UPDATE=1 rewrites them.
. "$ROOT/tests/cli/lib.sh"
rm -rf work
cp -r "$ROOT/tests/cli/sessions" work
cd work || exit 1
for f in *.nki; do
    n=${f%.nki}
    options=$(sed -n '1s/^# //p' "$n.commands") values=$(sed -n '1s/^# try: //p' "$f") grid=
    case $options in *--grid*) grid='--grid 2' options=${options#--grid 2} ;; esac
    "$NKI" run "$f" $values $grid $options --commands "$n.commands" >got 2>&1 </dev/null
    echo "exit status $?" >>got
    [ -z "${NKI_GOLDEN_UPDATE:-}" ] || cp got "$ROOT/tests/cli/sessions/$n.session"
    diff "$ROOT/tests/cli/sessions/$n.session" got || { failed=1; echo "FAILED: session $n"; }
    types=$(echo "$values" | sed 's/:[a-z]*\(([0-9.]*)\)\{0,1\}//g')
    "$NKI" compile "$f" $types $grid -o "$n.neff" || failed=1
    "$NKI" run "$n.neff" $values $options --commands "$n.commands" >again 2>&1 </dev/null
    echo "exit status $?" >>again
    diff got again || { failed=1; echo "FAILED: session $n of the compiled file"; }
done

# Results are those of a plain run, whatever looks on; quit writes nothing.
run="$NKI run -q source.nki"
plain=$($run --print)
watched=$($run --print --watch s --break 20 --commands source.commands)
case $watched in *"$plain") ;; *) failed=1; echo "FAILED: another result: $watched" ;; esac
check 0 '*(nki) quit' '' sh -c "echo quit | $run --break 20 --commands - --out never"
[ ! -e never ] || { echo 'FAILED: quit wrote results'; failed=1; }
# When a script ends the run goes on; when standard input ends, it ends too.
check 0 '*20, breakpoint 1*(nki)*out0*41*' '' sh -c "$NKI run source.nki --break 20 --commands /dev/null"
check 0 '*20, breakpoint 1*(nki) ' '' $run --print --break 20
# --save: after the last write; at a place, as it was then. s = x + 0, x = the first rows of a.
want="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 8), }
000000000000803f0000004000004040000080400000a0400000c0400000e040\
0000004100001041000020410000304100004041000050410000604100007041"
$run 'a=float32[2,8]:arange' 'b=float32[2,8]:zeros' --save out=o.npy --save s=s.npy --save x@source.nki:20=x.npy \
    --save a=a.npy --save x@18=early.npy || failed=1
for f in o s x a; do
    same "$want" "$("$NPYTOOL" show $f.npy)"
done
[ "$("$NPYTOOL" show early.npy)" != "$want" ] || { echo 'FAILED: x was there early'; failed=1; }

# Mistakes, each with what is near.
check 2 '' "nki: --watch: there is no tensor 'outt'; did you mean out?" $run --watch outt
check 2 '' "nki: --watch: there is no tensor 'zzzzzz'; there are a, b, out, tile, s" $run --watch zzzzzz
check 2 '' "nki: --break: source.nki:16 has no instructions; the next line that has is source.nki:18" $run --break 16
check 2 '' "nki: --break: source.nki:99 has no instructions, nor has a line below" $run --break source.nki:99
check 2 '' "nki: --break: the kernel has no source 'sorce.nki'; did you mean source.nki?" $run --break sorce.nki:3
check 2 '' "nki: --break: 'add' should be FILE:LINE" $run --break add
check 2 '' "nki: --save wants NAME=FILE.npy, not 'out'" $run --save out
check 2 '' "nki: --save: source.nki:16 has no instructions; *" $run --save out@16=x.npy
check 2 '' "nki: --order does not go with --break, --watch and --save" $run --watch out --order 3
check 4 '*' "nki: cannot write 'none/x.npy': No such file or directory" $run -q --save out=none/x.npy
check 4 '' "nki: cannot read 'none': No such file or directory" $run --break 20 --commands none
check 4 '' "nki: --save row: the run never came to loop.nki:16" "$NKI" run -q loop.nki 'x=float32[3,4]:arange' \
    'count=int32[1,1]:zeros' --save row@16=y.npy
# A run that fails says why.
check 1 '*trip 3*' '*error\[oob_access\]*' "$NKI" run -q loop.nki 'x=float32[3,4]:arange' 'count=int32[1,1]:full(4)' --watch row
done_testing
