#!/bin/sh
# Every kernel in examples/ says in its first comment what it shows, and how to call it.
set -eu
cd "$1"
bad=0
for f in examples/*.nki; do
    [ -e "$f" ] || continue
    case $(head -n 1 "$f") in
    '# '*) ;;
    *) echo "$f: the first line should be a comment that says what it shows"; bad=1 ;;
    esac
    sed '/^#/!q' "$f" | grep -q '^# try:' || { echo "$f: no '# try:' line in its first comment"; bad=1; }
done
exit $bad
