#!/bin/sh
# run.sh SOURCE WORK STATIC: installs the release build under WORK and builds programs against it in both
# ways, find_package and pkg-config, then runs them and the installed tool; and the same against the
# static library of the build folder STATIC.
set -eu
src=$1 work=$2 static=$3
mkdir -p "$work"
# The release build that ./x check has just made serves; without one, one is made here.
build=$src/build/release
if [ ! -f "$build/build.ninja" ]; then
    build=$work/build
    cmake -G Ninja -S "$src" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
        >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
fi
cmake --build "$build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rm -rf "$work/prefix"
cmake --install "$build" --prefix "$work/prefix" >"$work/log"

cmake -G Ninja -S "$src/tests/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log"
cmake --build "$work/consumer" >>"$work/log" || { cat "$work/log"; exit 1; }
"$work/consumer/consumer" "$src/examples/vector_add.nki"

pc=$(dirname "$(find "$work/prefix" -name nki.pc)")
export PKG_CONFIG_PATH="$pc"
lib=$(pkg-config --variable=libdir nki)
cc -std=c11 -o "$work/consumer_pc" "$src/tests/consumer/main.c" $(pkg-config --cflags --libs nki) \
    -Wl,-rpath,"$lib"
"$work/consumer_pc" "$src/examples/vector_add.nki"
# run FOLDER: every example program of it.
run() {
    for program in "$src"/examples/c/*.c; do
        name=$(basename "$program" .c)
        "$1/$name" $([ "$name" != first_call ] || echo "$src/examples/softmax.nki") >"$work/log" ||
            { cat "$work/log"; echo "$1/$name failed"; exit 1; }
    done
}
mkdir -p "$work/pc"
for program in "$src"/examples/c/*.c; do
    cc -std=c11 -D_POSIX_C_SOURCE=200809L -o "$work/pc/$(basename "$program" .c)" "$program" \
        $(pkg-config --cflags --libs nki) -lm -Wl,-rpath,"$lib"
done
run "$work/pc"

rm -rf "$work/static"
cmake --install "$static" --prefix "$work/static" >"$work/log"
cmake -G Ninja -S "$src/examples/c" -B "$work/programs" -DCMAKE_PREFIX_PATH="$work/static" >"$work/log" &&
    cmake --build "$work/programs" >>"$work/log" || { cat "$work/log"; exit 1; }
run "$work/programs"
export PKG_CONFIG_PATH="$(dirname "$(find "$work/static" -name nki.pc)")"
cc -std=c11 -o "$work/consumer_static" "$src/tests/consumer/main.c" $(pkg-config --static --cflags --libs nki)
"$work/consumer_static" "$src/examples/vector_add.nki"

"$work/prefix/bin/nki" --version
share=$work/prefix/share
for f in "$share/man/man1/nki.1" "$share/bash-completion/completions/nki" "$share/zsh/site-functions/_nki"; do
    grep -q 'schedule' "$f" || { echo "$f is not there"; exit 1; }
done
sh "$src/tools/check-abi.sh" "$src" "$(find "$work/prefix" -name 'libnki.so' | head -n 1)"
sh "$src/tools/check-symbols.sh" "$(find "$work/prefix" -name 'libnki.so' | head -n 1)"
