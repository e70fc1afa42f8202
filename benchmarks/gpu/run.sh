#!/usr/bin/env bash
# Everything that a machine with a GPU can tell us, in one call that stops by itself: tests, memory
# checks of the kernels, speed, losses and memory of each precision, resuming, NCCL (is overlap real, does a
# failed allocation still report), peers.
#
#   cmake --preset cuda -DSTRETTO_BENCHMARKS=ON
#   cmake --build build/cuda --target stretto engine_tests core_tests phrasebook reversal portraits reviews optimizer_bench operators_bench nccl_check
#   OUT=results benchmarks/gpu/run.sh build/cuda
#
# run.sh [BUILD] [--seconds N] [--only PART,PART…] [--dry-run] [--tiny] [--device cpu]; --help says more.
# BUILD may be the archive that benchmarks/gpu/pack.sh makes of a build on another machine. libtorch is
# looked for where the build had it, in STRETTO_LIBTORCH=/path/to/torch, and in this machine's python3.
# Relative paths start at the checkout. Nothing is downloaded.
# Leaves with 0 if every step passed, 1 if one failed or had no time, 2 if it cannot start.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=build/release
if [[ $# -gt 0 && $1 != -* ]]; then
  build=$1
  shift
fi
exec python3 benchmarks/gpu/everything.py --build "$build" --out "${OUT:-build/gpu_results}" \
  --seconds "${STRETTO_GPU_SECONDS:-540}" "$@"
