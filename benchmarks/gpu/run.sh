#!/usr/bin/env bash
# What a machine with a GPU can tell us in nine minutes: do the tests pass there, are the kernels
# free of memory faults and races, how fast does training go.
#
#   ./dev build                                  # on a machine with a GPU this is the CUDA build
#   cmake --build build/release --target engine_tests phrasebook
#   OUT=results benchmarks/gpu/run.sh [BUILD]    # BUILD: build/release, or where you built
#
# Writes summary.md and the logs into $OUT (default: build/gpu_results), never asks, and stops by
# itself: each step ends when its own time or the whole run's (STRETTO_GPU_SECONDS, 540) is up.
# A build made elsewhere finds another libtorch by STRETTO_LIBTORCH=/path/to/torch.
# Leaves with 0 if every step passed, 1 if one failed, 2 if it cannot start.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

build=${1:-build/release}
out=${OUT:-build/gpu_results}
deadline=$((SECONDS + ${STRETTO_GPU_SECONDS:-540}))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

give_up() {
  echo "error: $1" >&2
  echo "  $2" >&2
  exit 2
}

nvidia-smi -L >/dev/null 2>&1 || give_up "nvidia-smi lists no GPU" "run this on a machine with one"
for program in stretto engine_tests phrasebook; do
  [[ -x $build/$program ]] || give_up "there is no $build/$program" \
    "./dev build --preset cuda $program, then name build/cuda as the first argument"
done
mkdir -p "$out" || exit 2

if [[ -n ${STRETTO_LIBTORCH:-} ]]; then
  libraries=$STRETTO_LIBTORCH/lib
  for folder in "$STRETTO_LIBTORCH"/../nvidia/*/lib; do libraries+=:$folder; done
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# step NAME SECONDS LOG COMMAND...: at most that long, and never past the deadline.
step() {
  local name=$1 limit=$2 log=$out/$3 begin=$SECONDS status=0 verdict=passed
  shift 3
  local left=$((deadline - SECONDS - 10))
  if [[ $left -le 5 ]]; then
    echo "| $name | not run: no time left | |" >>"$out/summary.md"
    failed=1
    return 1
  fi
  [[ $limit -gt $left ]] && limit=$left
  echo "== $name (at most $limit s)"
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) ;;
    124 | 137) verdict="FAILED: stopped after $limit s" ;;
    *) verdict="FAILED: exit $status" ;;
  esac
  echo "| $name | $verdict | $((SECONDS - begin)) s |" >>"$out/summary.md"
  echo "== $name: $verdict, $((SECONDS - begin)) s"
  [[ $status -eq 0 ]] || failed=1
  return $status
}

# The kernel tests once more under a tool of compute-sanitizer, which makes them far slower.
sanitize() {
  local tool=$1
  if ! command -v compute-sanitizer >/dev/null; then
    echo "| compute-sanitizer $tool | not run: it is not installed | |" >>"$out/summary.md"
    return
  fi
  step "compute-sanitizer $tool" 75 "$tool.log" compute-sanitizer --tool "$tool" \
    --error-exitcode 1 --print-limit 20 "$build/engine_tests" \
    --gtest_filter='CudaKernels.*-*SelfAttention*'
}

# train NAME SECONDS OVERRIDES...: the smoke recipe with another model, speed from its metrics.
train() {
  local name=$1 limit=$2 run=$work/$1
  shift 2
  step "train $name" "$limit" "train_$name.log" "$build/stretto" train \
    configs/smoke/translation.toml --run "$run" run.device=cuda report.every=1 \
    train.save_every=1000000 eval.every=1000000 "$@"
  [[ -f $run/metrics.jsonl ]] || return
  python3 - "$name" "$run/metrics.jsonl" >>"$out/speed.md" <<'PYTHON'
import json
import statistics
import sys

events = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.endswith("\n")]
steps = [e for e in events if e["event"] == "train"]
steady = steps[len(steps) // 3:]  # the first third warms up
if steady:
    speed = statistics.median(e["tokens_per_second"] for e in steady)
    memory = max(e.get("peak_memory_bytes", 0) for e in steps) / 2**20
    print(f"| {sys.argv[1]} | {len(steps)} | {speed:.0f} | {steps[0]['loss']:.3f} | "
          f"{steps[-1]['loss']:.3f} | {memory:.0f} |")
PYTHON
}

base=(model.d_model=512 model.encoder.num_layers=6 model.encoder.num_heads=8
  model.encoder.ffn_dim=2048 model.decoder.num_layers=6 model.decoder.num_heads=8
  model.decoder.ffn_dim=2048 data.max_tokens=8192 train.update_freq=1 optim.lr=5e-4)

{
  echo "# GPU results, $(date -u +%Y-%m-%d)"
  echo
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  echo
  echo "| step | result | time |"
  echo "|---|---|---|"
} >"$out/summary.md"
: >"$out/speed.md"

step "engine tests" 150 engine_tests.log "$build/engine_tests" --gtest_brief=1
"$build/engine_tests" --gtest_list_tests --gtest_filter='CudaKernels.*' >"$work/list" 2>/dev/null
grep -q '^  ' "$work/list" || { echo "| kernel tests | FAILED: none in this build | |" >>"$out/summary.md"; failed=1; }
if grep -q 'no CUDA build' "$out/engine_tests.log"; then
  echo "| kernel tests | FAILED: skipped, this build sees no GPU | |" >>"$out/summary.md"
  failed=1
fi
step "phrasebook" 20 phrasebook.log "$build/phrasebook" build/phrasebook
train tiny 60 train.max_steps=200
train base 75 "${base[@]}" train.max_steps=150
train base_attention_dropout 60 "${base[@]}" model.attention_dropout=0.1 train.max_steps=60
sanitize memcheck
sanitize racecheck

{
  echo
  echo "| model | updates | target tokens/s, median | first loss | last loss | memory, MiB |"
  echo "|---|---|---|---|---|---|"
  cat "$out/speed.md"
} >>"$out/summary.md"
rm -f "$out/speed.md" "$out/phrasebook.log"
cat "$out/summary.md"
exit "$failed"
