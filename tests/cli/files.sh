# Bad files of every kind end in a sentence and the right status.
. "$ROOT/tests/cli/lib.sh"
rm -rf ./*.nki ./*.npy dir out
mkdir dir
printf 'x = 1\n' >ok.nki
printf 'x = = 1\n' >bad.nki
printf 'x = 1' >no_newline.nki
printf 'x = 1\r\ny = 2\r\n' >crlf.nki
printf 'x = "\377"\n' >latin1.nki
printf 'x = 1\n\000\n' >nul.nki
: >empty.nki
head -c 20000 /dev/urandom >random.nki
dd if=/dev/zero of=huge.nki bs=1 count=0 seek=70000000 2>/dev/null

for how in '' --parse-only; do
    check 4 '' "nki: cannot read 'missing.nki': No such file or directory" "$NKI" check $how missing.nki
    check 4 '' "nki: cannot read 'dir': it is a directory" "$NKI" check $how dir
    check 4 '' "nki: 'huge.nki' is 70000000 bytes; the limit for a kernel file is 67108864" "$NKI" check $how huge.nki
    check 4 '' "nki: 'random.nki' is a binary file, not kernel source" "$NKI" check $how random.nki
    check 1 '' 'bad.nki:1:5: error*' "$NKI" check $how bad.nki
    check 1 '' 'latin1.nki:1:*: error*' "$NKI" check $how latin1.nki
    check 1 '' 'nul.nki:2:1: error*' "$NKI" check $how nul.nki
done
for f in ok empty no_newline crlf; do
    check 0 '' '' "$NKI" check $f.nki
    check 0 "$f.nki: ok" '' "$NKI" check --parse-only $f.nki
done
# Any number of files; one that fails stops none of the others.
check 1 'ok.nki: ok
empty.nki: ok' 'bad.nki:1:*' "$NKI" check --parse-only ok.nki bad.nki empty.nki
check 4 'ok.nki: ok' '*missing.nki*bad.nki:1:*' "$NKI" check --parse-only missing.nki bad.nki ok.nki
# Renderings.
check 1 '' 'bad.nki:1:5: error\[*\]: *' "$NKI" check --diag-format=short bad.nki
check 1 '' '{*"bad.nki"*}' "$NKI" check --diag-format=json bad.nki
# Standard input.
sh -c "printf 'x = 1\n' | '$NKI' check -" >.o 2>&1 || { echo 'FAILED: check -'; failed=1; }
same 'status 1: <stdin>:1:5' "$(printf 'x = = 1\n' | "$NKI" check --diag-format=short - 2>.e; echo "status $?: $(cut -d: -f1-3 .e)")"

# A file that may not be read (root reads everything).
if [ "$(id -u)" != 0 ]; then
    chmod 0 ok.nki
    check 4 '' "nki: cannot read 'ok.nki': Permission denied" "$NKI" check ok.nki
fi

# .npy files that are not.
b='b=float32[2,3]:zeros'
"$NPYTOOL" make good.npy
"$NPYTOOL" make cut.npy cut=1
"$NPYTOOL" make short.npy bytes=00
"$NPYTOOL" make v9.npy version=9
"$NPYTOOL" make complex.npy 'descr=<c8' bytes=00
"$NPYTOOL" make many.npy shape=1,1,1,1,1,1,1,1,1
"$NPYTOOL" make vast.npy shape=4294967296,4294967296,4294967296
"$NPYTOOL" make i8.npy 'descr=<i8' shape=1 bytes=0000000001000000
: >empty.npy
printf '\223NUMPY\001\000\377\377{' >head.npy
printf '\223NUMPY\001\000\005\000{aaa}' >dict.npy
check 4 '' "nki: cannot read 'none.npy': No such file*" "$NKI" run "$add" a=float32@none.npy "$b"
check 4 '' "nki: cannot read 'dir': it is a directory" "$NKI" run "$add" a=float32@dir "$b"
check 4 '' "nki: 'cut.npy' is truncated*" "$NKI" run "$add" a=float32@cut.npy "$b"
check 4 '' "nki: 'short.npy' is truncated*" "$NKI" run "$add" a=float32@short.npy "$b"
check 4 '' "nki: 'empty.npy' is not an .npy file" "$NKI" run "$add" a=float32@empty.npy "$b"
check 4 '' "nki: 'head.npy' is truncated*" "$NKI" run "$add" a=float32@head.npy "$b"
check 4 '' "nki: 'dict.npy' has a malformed header" "$NKI" run "$add" a=float32@dict.npy "$b"
check 4 '' "nki: 'v9.npy' is an .npy file of a version*" "$NKI" run "$add" a=float32@v9.npy "$b"
check 4 '' "nki: 'complex.npy' has an element type that kernels do not know" "$NKI" run "$add" a=float32@complex.npy "$b"
check 4 '' "nki: 'many.npy' has a malformed shape, or more than 8 dimensions" "$NKI" run "$add" a=float32@many.npy "$b"
check 4 '' "nki: 'vast.npy' is truncated*" "$NKI" run "$add" a=float32@vast.npy "$b"
check 4 '' "nki: 'i8.npy' (int64) holds a 64-bit integer that does not fit in 32 bits" "$NKI" run "$add" a=@i8.npy "$b"
# An import that cannot be read.
truncate -s 65M vast_helper.py
printf 'import nki\nimport vast_helper\n@nki.jit\ndef kernel():\n    vast_helper.f()\n' >imports.py
check 1 '' '*error\[import_unreadable\]*vast_helper*' "$NKI" check imports.py
rm vast_helper.py
# Output that cannot be written.
: >file
check 4 '' "nki: cannot make the folder 'file/out': Not a directory" \
    "$NKI" run "$add" a=float32@good.npy "$b" --out file/out
ab='a=float32[2,3] b=float32[2,3]'
check 4 '' "nki: cannot write 'none/x.neff': No such file or directory" "$NKI" compile "$add" $ab -o none/x.neff
check 4 '' "nki: cannot write 'dir': *" "$NKI" compile "$add" $ab -o dir
check 2 '' "nki: --as wants a C name, not '2nd'" "$NKI" bindgen "$add" $ab --as 2nd
check 4 '' "nki: cannot write 'none/x.h': No such file or directory" "$NKI" bindgen "$add" $ab -o none/x.h
check 4 '' "nki: cannot write 'none/x': No such file or directory" "$NKI" profile "$add" $ab --html none/x
[ ! -e none ] && [ ! -e dir.part ] || { echo 'FAILED: files left behind'; failed=1; }
# A full disk.
if [ -c /dev/full ]; then
    for c in "--help" "--version" "help --man" "completion bash" "isa" "explain" "run $add" "run $add --print" \
        "check $add $ab --dump=ir" "compile $add $ab -o -" "profile $add $ab" "profile $add $ab --html -" \
        "bindgen $add $ab"; do
        check 4 '' 'nki: cannot write to standard output: No space left on device' sh -c "'$NKI' $c >/dev/full"
    done
    for c in "compile $add $ab -o" "bindgen $add $ab -o" "profile $add $ab --json" \
        "profile $add $ab --html" "profile $add $ab --perfetto"; do
        check 4 '' "nki: cannot write '/dev/full': No space left on device" "$NKI" $c /dev/full
    done
    [ -c /dev/full ] || { echo 'FAILED: /dev/full was replaced'; failed=1; }
fi
# A reader that leaves early: silence, or one sentence where the signal is ignored.
same '' "$("$NKI" isa 2>&1 >/dev/null | head -n 0; ("$NKI" explain 2>err || :) | head -n 1 >/dev/null; cat err)"
(trap '' PIPE; "$NKI" help --man 2>err | :)
case $(cat err) in '' | 'nki: cannot write to standard output: Broken pipe') ;; *) echo "FAILED: $(cat err)"; failed=1 ;; esac

# Containers that are none, by every command that reads one.
: >empty.neff
cp random.nki random.neff
cp ok.nki text.neff
mkdir -p dir.neff
for c in run inspect profile; do
    check 4 '' "nki: cannot read 'none.neff': No such file or directory" "$NKI" $c none.neff
    check 4 '' "nki: cannot read 'dir.neff': it is a directory" "$NKI" $c dir.neff
    for f in empty random text; do
        check 4 '' "*$f.neff*" "$NKI" $c $f.neff
    done
done
for c in check run compile profile diff bindgen; do
    two=
    [ $c != diff ] || two=ok.nki
    o=
    [ $c != compile ] || o='-o x.neff'
    check 4 '' "nki: cannot read 'missing.nki': No such file or directory" "$NKI" $c missing.nki $two $o
    check 4 '' "nki: cannot read 'dir': it is a directory" "$NKI" $c dir $two $o
    check 4 '' "nki: 'random.nki' is a binary file, not kernel source" "$NKI" $c random.nki $two $o
    [ $c = check ] || check 1 '' '*error*' "$NKI" $c empty.nki $two $o
done
done_testing
