#!/bin/sh
# Only the public prefix leaves the shared library. A static one has nothing to check.
case $1 in
*.a) exit 0 ;;
esac
bad=$(nm -D --defined-only "$1" | awk '$3 !~ /^nki_/ {print $3}')
[ -z "$bad" ] || { echo "$1 exports: $bad"; exit 1; }
