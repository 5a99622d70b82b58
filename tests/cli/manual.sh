# The manual page has every command and every option that any help shows, and is good mdoc.
. "$ROOT/tests/cli/lib.sh"
"$NKI" help --man >nki.1
commands=$("$NKI" --help | sed -n 's/^    \([a-z]*\)  .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 11 ] || { echo "FAILED: commands of --help: $commands"; failed=1; }
for c in $commands; do
    "$NKI" "$c" --help | sed -n "s/^    \(-W\|-[-a-zA-Z]*\).*/$c \1/p"
done | sort >wanted
# In the page: \- is a hyphen; a command's options stand in its entry, all of them below OPTIONS.
sed 's/\\-/-/g; s/\\&//g; s/^\.It Fl -\?W Ns.*/.It Fl W/' nki.1 | awk '
    /^\.It Nm nki Cm / { command = $5 }
    /^\.Sh COMMANDS/ { inside = 1 }
    /^\.Sh OPTIONS/ { described = 1 }
    /^\.Fl / && inside && !described { listed[command " -" $2] = 1; known[$2] = 1 }
    /^\.It Fl / && described { delete known[$3] }
    END {
        for (l in listed) print l
        for (o in known) print "not described: -" o
    }' | sort >got
diff wanted got || failed=1
if command -v mandoc >/dev/null; then
    same '' "$(mandoc -Tlint -Wwarning nki.1)"
    mandoc -Tascii nki.1 >text || failed=1
fi
done_testing
