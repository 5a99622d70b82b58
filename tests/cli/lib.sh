# Sourced by the scripts of this folder. NKI, NPYTOOL and ROOT come from the build.
#   check STATUS 'OUT' 'ERR' command...   runs it; OUT and ERR are shell patterns for the whole text
#                                         (trailing newlines aside); '*' accepts anything
set -u
failed=0
add=$ROOT/examples/vector_add.nki

check() {
    want=$1 out=$2 err=$3
    shift 3
    "$@" >.out 2>.err </dev/null
    status=$?
    got_out=$(cat .out) got_err=$(cat .err)
    why=
    [ "$status" = "$want" ] || why="exit $status, wanted $want"
    case $got_out in $out) ;; *) why="$why; standard output" ;; esac
    case $got_err in $err) ;; *) why="$why; standard error" ;; esac
    if [ -n "$why" ]; then
        failed=1
        printf 'FAILED (%s): %s\n  out: %s\n  err: %s\n' "$why" "$*" "$got_out" "$got_err"
    fi
}

# same 'WANTED' 'GOT'
same() {
    [ "$1" = "$2" ] || { failed=1; printf 'FAILED: wanted\n%s\ngot\n%s\n' "$1" "$2"; }
}

done_testing() { exit $failed; }
