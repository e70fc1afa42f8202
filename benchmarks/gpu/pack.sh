#!/usr/bin/env bash
# A build that runs on another machine, for benchmarks/gpu/run.sh there: the programs, and of the libraries
# they need those that are neither libtorch's nor the C and C++ runtime's.
#
#   benchmarks/gpu/pack.sh build/cuda packed      # then carry `packed` and this checkout
set -euo pipefail
[[ $# -eq 2 && -d $1 ]] || {
  echo "usage: benchmarks/gpu/pack.sh BUILD FOLDER" >&2
  exit 2
}
build=$1 folder=$2
mkdir -p "$folder/lib"
programs=(stretto engine_tests core_tests phrasebook optimizer_bench nccl_check)
for program in "${programs[@]}"; do
  if [[ -x $build/$program ]]; then
    cp "$build/$program" "$folder/"
  else
    echo "not in $build, so not packed: $program" >&2
  fi
done
cp "$build"/libstretto_*.so "$folder/"
strip --strip-debug "$folder"/*.so "$folder"/lib/*.so* 2>/dev/null || true
for file in "$folder"/*; do
  [[ -f $file ]] || continue
  ldd "$file" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | while read -r library; do
  case ${library##*/} in
    libstretto_* | libtorch* | libc10* | libcu* | libnv* | libnccl* | libgomp* | libcaffe2*) ;;
    libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libstdc++* | libgcc_s* | ld-linux*) ;;
    *) cp -L "$library" "$folder/lib/" ;;
  esac
done
du -sh "$folder"
