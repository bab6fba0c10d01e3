#!/bin/sh
# Builds programs with debug information of every kind that the tools of this
# machine write, into the directory given: fixtures.sh DIRECTORY
set -eu
source=$(dirname "$0")/fixtures.cpp
mkdir -p "$1"
cd "$1"
case $source in /*) ;; *) source=$OLDPWD/$source ;; esac
build() { # name, flags
    name=$1
    shift
    c++ -std=c++17 -O2 "$@" -o "$name" "$source" || echo "skipped: $name" >&2
}
for version in 2 3 4 5; do
    build "dwarf$version" -g -gdwarf-$version
done
build dwarf64 -g -gdwarf-5 -gdwarf64
build zlib -g -gz=zlib
build zdebug -g -gz=zlib-gnu
build lto -g -flto
build sections -g -O3 -ffunction-sections -Wl,--gc-sections -static
build lines -g1
build split5 -g -gdwarf-5 -gsplit-dwarf
build split4 -g -gdwarf-4 -gsplit-dwarf
build package -g -gdwarf-5 -gsplit-dwarf
dwp -e package -o package.dwp 2>/dev/null || llvm-dwp -e package -o package.dwp || echo "skipped: package" >&2
objcopy --compress-debug-sections=zstd dwarf5 zstd 2>/dev/null ||
    echo "skipped: zstd: this objcopy has none" >&2
build first -g -gdwarf-4
build second -g -gdwarf-4 -O1
dwz -m common.debug first second || echo "skipped: dwz" >&2
build separate -g -Wl,--build-id=sha1
objcopy --only-keep-debug separate separate.debug
strip separate
objcopy --add-gnu-debuglink=separate.debug separate
