#!/bin/bash
# Training speed and memory on Multi30k en-de beside plain PyTorch, fairseq and OpenNMT-py: the tables of translation_multi30k_*.md.
#
#   PEERS=DIR PLAIN=FILE [MKL=FILE] benchmarks/multi30k_beside_peers.sh W1|W2 [--rounds 5] [--updates 20]
#
# W1 is 3+3 layers, d_model 256; W2 is the base model of "Attention Is All You Need".
# DIR/venv/{torch211,fairseq,onmt}: Python environments with torch 2.11, fairseq 0.12.2 and OpenNMT-py 3.5.1; the last two
#   may be missing.
# DIR/data/sp: train, val and test as SentencePiece pieces, and joint.model, made of the training text by
#   SentencePieceTrainer.train(input='train.en,train.de', model_prefix='joint', vocab_size=8000, model_type='bpe',
#                              character_coverage=1.0, pad_id=0, unk_id=1, bos_id=2, eos_id=3)
# DIR/data/fs: fairseq-preprocess -s en -t de --trainpref sp/train --validpref sp/val --testpref sp/test_2016_flickr
#   --srcdict fs.dict --joined-dictionary --destdir fs, fs.dict being the pieces of joint.vocab but the four specials.
# DIR/data/onmt_W1.yaml, onmt_W2.yaml: the models below for OpenNMT-py (enc_layers, dec_layers, heads, hidden_size, transformer_ff,
#   add_qkvbias, share_embeddings, share_decoder_embeddings, batch_type tokens, bucket_size 29000, report_every 1).
# PLAIN: plain_nmt.py, the same models and loop in PyTorch alone, which prints `UPD n tokens loss`.
# MKL: on AMD, a library for LD_PRELOAD that lets PyTorch's MKL take its fast path (mkl_serv_intel_cpu_true() returns 1): each
#   peer runs as it installs and with it. Without MKL as it installs only.
set -euo pipefail
: "${PEERS:?the folder with the venvs and the data}" "${PLAIN:?the script plain_nmt.py}"
export PEERS DATA=$PEERS/data OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 CUDA_VISIBLE_DEVICES='' PYTHONUNBUFFERED=1
cd "$(dirname "$0")/.."
venv=$PEERS/venv data=$PEERS/data workload=${1:?W1 or W2}
shift
case $workload in
W1) layers=3 width=256 inner=1024 heads=4 ;;
W2) layers=6 width=512 inner=2048 heads=8 ;;
*) echo "unknown workload $workload: W1 or W2" >&2; exit 2 ;;
esac

stretto="benchmarks/follow_metrics.py {RUN} -- build/release/stretto train configs/translation/multi30k_beside_peers.toml
  --run {RUN} train.precision={PRECISION} tokenizer.model=$data/sp/joint.model data.max_tokens=1890 train.max_steps={U} schedule.warmup_steps=10 eval.every=100000
  eval.bleu=false train.save_every=100000 report.html=false report.tensorboard=false model.d_model=$width"
for side in encoder decoder; do
  stretto+=" model.$side.num_layers=$layers model.$side.ffn_dim=$inner model.$side.num_heads=$heads"
done
plain="$venv/torch211/bin/python $PLAIN train --wl $workload --max-tokens 2048 --updates {U}"
fairseq="$venv/fairseq/bin/fairseq-train $data/fs -s en -t de --arch transformer --share-all-embeddings
  --encoder-normalize-before --decoder-normalize-before --dropout 0.1 --optimizer adam --adam-betas '(0.9, 0.98)' --lr 5e-4
  --lr-scheduler inverse_sqrt --warmup-updates 400 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
  --clip-norm 1.0 --max-tokens 2048 --max-update {U} --log-interval 1 --log-format json --cpu --disable-validation
  --no-save --save-dir {RUN} --seed 1 --max-source-positions 512 --max-target-positions 512"
for side in encoder decoder; do
  fairseq+=" --$side-layers $layers --$side-embed-dim $width --$side-ffn-embed-dim $inner --$side-attention-heads $heads"
done
onmt="$venv/onmt/bin/onmt_train -config $data/onmt_$workload.yaml -batch_size 2048 -train_steps {U} -save_model {RUN}/m
  -save_checkpoint_steps {U}"

stretto=${stretto//$'\n'/ }
tools=(--tool "Stretto=${stretto/'{PRECISION}'/fp32}" --tool "Stretto, mixed_bf16=${stretto/'{PRECISION}'/mixed_bf16}")
peer() { # NAME COMMAND
  local command=${2//$'\n'/ }
  tools+=(--tool "$1=$command")
  [[ -z ${MKL:-} ]] || tools+=(--tool "$1, MKL=env LD_PRELOAD=$MKL $command")
}
peer "plain PyTorch" "$plain"
if [[ -n ${MKL:-} ]]; then
  tools+=(--tool "plain PyTorch, MKL, bf16=env LD_PRELOAD=$MKL $plain --bf16")
else
  tools+=(--tool "plain PyTorch, bf16=$plain --bf16")
fi
# What is not installed is left out.
[[ ! -d $venv/fairseq ]] || peer fairseq "$fairseq"
[[ ! -d $venv/onmt ]] || peer OpenNMT-py "$onmt"
benchmarks/beside_peers.py --updates 20 "$@" "${tools[@]}"
