#!/bin/sh
# Runs damaged traces through the scanner built with AddressSanitizer and UBSan.
# Needs g++ and python3 only, nothing built before. Usage: run_asan.sh [number of inputs]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernel=$here/../../popmodel/kernel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CXX:-g++}" -std=c++17 -g -O1 -Wall -Wextra -fsanitize=address,undefined \
    -fno-sanitize-recover=all -I"$kernel" "$here/driver.cpp" "$kernel/scanner.cpp" "$kernel/streams.cpp" -o "$work/driver"
"${PYTHON:-python3}" "$here/fuzz_scanner.py" --corpus "$work/corpus" --iterations "${1:-3000}"
find "$work/corpus" -type f -print0 | xargs -0 -n 2000 "$work/driver"
