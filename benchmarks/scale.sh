#!/bin/sh
# Everything that benchmarks/scale_*.md holds, one after the other on an otherwise quiet machine, with the commit and the
# processor at its head; about an hour and a half. Needs root for the network namespaces of overlap.py, the target
# optimizer_bench, and a Python with torch for the peers' optimizers (PYTHON).
#
#     sudo benchmarks/scale.sh OUT [PART...]      parts: ladder overlap four single optimizer costs; default: all
set -eu
out=$1
shift
parts=${*:-ladder overlap four single optimizer costs}
build=${BUILD:-build/release}
python=${PYTHON:-python3}
mkdir -p "$out"

# run NAME COMMAND...: the command and what it prints go to OUT/NAME.txt and to the screen
run() {
    name=$1
    shift
    echo "== $*"
    { echo "\$ $*"; "$@"; } > "$out/$name.txt" 2> "$out/$name.err" || echo "left with $?: see $out/$name.err"
    cat "$out/$name.txt"
}

{
    date -u +%F
    git rev-parse --short HEAD
    lscpu | sed -n 's/^Model name: *//p; s/^CPU(s): */CPUs: /p; s/^CPU family: */family: /p'
    lscpu | grep -o 'avx512_bf16' || true
} > "$out/head.txt"
cat "$out/head.txt"

for part in $parts; do
    case $part in
        ladder) run ladder benchmarks/ladder.py --stretto "$build/stretto" --target 2.75 --limit-minutes 8 --out "$out/ladder.json" ;;
        overlap)
            run overlap benchmarks/overlap.py --stretto "$build/stretto" --processes 2 --rates 1000,200 --rounds 3 \
                configs/translation/multi30k_overlap.toml
            run overlap_3072 benchmarks/overlap.py --stretto "$build/stretto" --processes 2 --rates 1000 --rounds 3 \
                --compress none configs/translation/multi30k_overlap.toml data.max_tokens=3072
            ;;
        four) run four benchmarks/overlap.py --stretto "$build/stretto" --processes 4 --rates 1000,200 --rounds 1 \
                configs/translation/multi30k_overlap.toml ;;
        single) run single benchmarks/overlap.py --stretto "$build/stretto" --processes 2 --rates local --compress none \
                --rounds 3 --updates 20 --skip 3 configs/translation/multi30k_ladder.toml ;;
        optimizer)
            run optimizer "$python" benchmarks/optimizer_beside_torch.py --bench "$build/optimizer_bench" --threads 2
            run optimizer_alone "$build/optimizer_bench" --elements=60000000 --threads=2 --rounds=5
            ;;
        costs) run costs benchmarks/costs.py --stretto "$build/stretto" --bench "$build/optimizer_bench" --rounds 3 \
                --updates 30 --every 10 configs/translation/multi30k_en_de.toml data.max_tokens=2048 ;;
        *) echo "unknown part $part: ladder overlap four single optimizer costs" >&2; exit 2 ;;
    esac
done
