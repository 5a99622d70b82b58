# The completion scripts offer what the tool takes. bash: the function is called as readline would.
. "$ROOT/tests/cli/lib.sh"
rm -rf files
mkdir -p files/sub
cd files || exit 1
ln -sf "$NKI" nki
: >a.nki
: >b.py
: >c.neff
: >x.npy
: >note.txt
PATH=$PWD:$PATH
export PATH
nki completion bash >nki.bash
nki completion zsh >_nki
cat >complete.bash <<'TEXT'
# For each line of the input, what stands at the cursor behind it: LINE -> REPLIES.
source ./nki.bash
while IFS= read -r line; do
    line=${line%.}
    COMP_LINE=$line COMP_POINT=${#line}
    # The splitting of readline: blanks, and = : @ as words of their own.
    mapfile -t COMP_WORDS < <(sed 's/[=:@]/ & /g' <<<"$line" | tr -s ' ' | tr ' ' '\n')
    ((COMP_CWORD = ${#COMP_WORDS[@]} - 1))
    _nki
    printf '%s->' "$line"
    [ ${#COMPREPLY[@]} = 0 ] || printf ' %s' "${COMPREPLY[@]}"
    echo
done
TEXT
cat >wanted <<'TEXT'
nki ch-> check
nki co-> compile completion
nki help ex-> explain
nki run --tar-> --target
nki check --ou->
nki run --target -> trn1 trn2 trn3
nki run --target=-> trn1 trn2 trn3
nki run a.nki --schedule l-> list
nki inspect c.neff --memory=s-> svg
nki run a-> a.nki
nki run b-> b.py
nki run n->
nki run s-> sub
nki run a.nki x=float32@x-> x.npy
nki run a.nki --expect out0=x-> x.npy
nki run a.nki --out -> sub
nki compile a.nki -o note-> note.txt
nki run a.nki -Wno-depr-> -Wno-deprecated
nki run a.nki -Wdepr-> -Wdeprecated
nki isa nc_transp-> nc_transpose
nki explain bad_ded-> bad_dedent
nki completion -> bash zsh
TEXT
# And every option of every command, as its help shows them.
for c in $(nki --help | sed -n 's/^    \([a-z]*\)  .*/\1/p'); do
    echo "nki $c -->$(nki "$c" --help | sed -n 's/^    \(-W\|-[-a-zA-Z]*\).*/ \1/p' | tr -d '\n')"
done >>wanted
if command -v bash >/dev/null; then
    sed 's/->.*/./' wanted | bash complete.bash 2>&1 | diff wanted - || failed=1
fi
if command -v zsh >/dev/null; then
    cat >complete.zsh <<'TEXT'
# An interactive zsh in a pseudo terminal; its widget prints what it would insert.
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -U compinit; compinit -D -u'
zpty -w z 'show() { zle complete-word; print -r -- "<<$BUFFER>>"; BUFFER=; }; zle -N show; bindkey "^I" show'
zpty -w z "print ready''"
zpty -r z line '*ready*'
for text in "$@"; do
    zpty -w -n z "$text"$'\t'
    zpty -r z line '*>>*' || exit 1
    print -r -- "${${line##*<<}%%>>*}."
    zpty -w z ''
done
zpty -d z
TEXT
    same 'nki explain bad_dedent .
nki run --target=.
nki run --schedule=list .
nki inspect --memory=svg .
nki run a.nki x=float32@x.npy .' "$(timeout 500 zsh -f complete.zsh 'nki explain bad_ded' 'nki run --targ' \
        'nki run --schedule=l' 'nki inspect --memory=s' 'nki run a.nki x=float32@x')"
fi
cd ..
done_testing
