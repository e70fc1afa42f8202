#!/bin/bash
# Training speed and memory on Multi30k en-de beside plain PyTorch, fairseq and OpenNMT-py: the table of translation_multi30k_*.md.
#
#   PEERS=DIR PLAIN=FILE benchmarks/multi30k_beside_peers.sh [--rounds 5]
#
# DIR/venv/{torch211,fairseq,onmt}: Python environments with torch 2.11, fairseq 0.12.2 and OpenNMT-py 3.5.1.
# DIR/data/sp: train, val and test as SentencePiece pieces, and joint.model, made of the training text by
#   SentencePieceTrainer.train(input='train.en,train.de', model_prefix='joint', vocab_size=8000, model_type='bpe',
#                              character_coverage=1.0, pad_id=0, unk_id=1, bos_id=2, eos_id=3)
# DIR/data/fs: fairseq-preprocess -s en -t de --trainpref sp/train --validpref sp/val --testpref sp/test_2016_flickr
#   --srcdict fs.dict --joined-dictionary --destdir fs, fs.dict being the pieces of joint.vocab but the four specials.
# DIR/data/onmt_W1.yaml: the model below for OpenNMT-py (enc_layers 3, dec_layers 3, heads 4, hidden_size 256, transformer_ff 1024,
#   add_qkvbias, share_embeddings, share_decoder_embeddings, batch_type tokens, bucket_size 29000, report_every 1).
# FILE: plain_nmt.py, the same model and loop in PyTorch alone, which prints `UPD n tokens loss`.
set -euo pipefail
: "${PEERS:?the folder with the venvs and the data}" "${PLAIN:?the script plain_nmt.py}"
export PEERS DATA=$PEERS/data OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 CUDA_VISIBLE_DEVICES='' PYTHONUNBUFFERED=1
cd "$(dirname "$0")/.."
venv=$PEERS/venv data=$PEERS/data

stretto="benchmarks/follow_metrics.py {RUN} -- build/release/stretto train configs/translation/multi30k_beside_peers.toml
  --run {RUN} tokenizer.model=$data/sp/joint.model data.max_tokens=1890 train.max_steps={U} schedule.warmup_steps=20 eval.every=100000
  eval.bleu=false train.save_every=100000 report.html=false report.tensorboard=false"
plain="$venv/torch211/bin/python $PLAIN train --wl W1 --max-tokens 2048 --updates {U}"
fairseq="$venv/fairseq/bin/fairseq-train $data/fs -s en -t de --arch transformer --share-all-embeddings
  --encoder-normalize-before --decoder-normalize-before --dropout 0.1 --optimizer adam --adam-betas '(0.9, 0.98)' --lr 5e-4
  --lr-scheduler inverse_sqrt --warmup-updates 400 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
  --clip-norm 1.0 --max-tokens 2048 --max-update {U} --log-interval 1 --log-format json --cpu --disable-validation
  --no-save --save-dir {RUN} --seed 1 --max-source-positions 512 --max-target-positions 512
  --encoder-layers 3 --encoder-embed-dim 256 --encoder-ffn-embed-dim 1024 --encoder-attention-heads 4
  --decoder-layers 3 --decoder-embed-dim 256 --decoder-ffn-embed-dim 1024 --decoder-attention-heads 4"
onmt="$venv/onmt/bin/onmt_train -config $data/onmt_W1.yaml -batch_size 2048 -train_steps {U} -save_model {RUN}/m
  -save_checkpoint_steps {U}"

benchmarks/beside_peers.py --updates 20 "$@" \
  --tool "Stretto=${stretto//$'\n'/ }" --tool "plain PyTorch=${plain//$'\n'/ }" \
  --tool "fairseq=${fairseq//$'\n'/ }" --tool "OpenNMT-py=${onmt//$'\n'/ }"
