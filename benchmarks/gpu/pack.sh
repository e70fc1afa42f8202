#!/usr/bin/env bash
# A build that runs on another machine, for benchmarks/gpu/run.sh there: the programs, and of the libraries
# they need those that are neither libtorch's nor the C and C++ runtime's.
#
#   benchmarks/gpu/pack.sh build/cuda packed.tar.gz      # then take along packed.tar.gz and this checkout
#   OUT=results benchmarks/gpu/run.sh packed.tar.gz      # there
set -euo pipefail
[[ $# -eq 2 && -d $1 && $2 == *.tar.gz ]] || {
  echo "usage: benchmarks/gpu/pack.sh BUILD FILE.tar.gz" >&2
  exit 2
}
build=$1 archive=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib"
for program in stretto engine_tests core_tests phrasebook reversal portraits reviews optimizer_bench operators_bench nccl_check; do
  if [[ -x $build/$program ]]; then
    cp "$build/$program" "$folder/"
  else
    echo "not in $build, so not packed: $program" >&2
  fi
done
for library in "$build"/libstretto_*.so; do
  [[ $library == *_alone.so ]] || cp "$library" "$folder/"
done
for file in "$folder"/*; do
  [[ -f $file ]] || continue
  ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | while read -r library; do
  case ${library##*/} in
    libstretto_* | libtorch* | libc10* | libcu* | libnv* | libnccl* | libgomp* | libcaffe2* | libshm*) ;;
    libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libstdc++* | libgcc_s* | ld-linux*) ;;
    *) cp -L "$library" "$folder/lib/" ;;
  esac
done
for file in "$folder"/*; do
  [[ ! -f $file ]] || strip --strip-debug "$file"
done
tar -C "$folder" -czf "$archive" .
du -h "$archive"
