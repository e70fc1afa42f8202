#!/usr/bin/env python3
"""Speech as plain PyTorch recognises it: networks of torch_speech_models.py on mel filter banks of torchaudio.

    torch_speech.py train NET MANIFEST [--batch-seconds 120 --updates 20] [--workers 1] [--compile] [--bf16]
    torch_speech.py infer NET MANIFEST [--batch-seconds 120 --updates 20] [--workers 1] [--compile] [--bf16]

MANIFEST is a CSV file of speech_files.py. Each prints `UPD n frames loss` and `END {…}`. A data loader with worker processes reads files
and makes features, of batches that are cut from utterances sorted by length, so that little is padded; their order is drawn. Training has
SpecAugment, CTC and AdamW; inference takes the most probable class of each frame.
"""
import argparse
import json
import pathlib

import soundfile
import torch
import torchaudio

import speech_files
import torch_speech_models as models


class Sounds(torch.utils.data.Dataset):
    def __init__(self, manifest, features, is_training):
        self.rows, self.is_training = speech_files.read_manifest(manifest), is_training
        window = int(speech_files.WINDOW_SECONDS * speech_files.RATE)
        self.mel = torchaudio.transforms.MelSpectrogram(
            speech_files.RATE, n_fft=512, win_length=window, hop_length=int(speech_files.HOP_SECONDS * speech_files.RATE),
            n_mels=features, norm="slaney", mel_scale="slaney")
        self.masks = [torchaudio.transforms.FrequencyMasking(10), torchaudio.transforms.TimeMasking(20)] * 2

    def __getitem__(self, index):
        path, _, text = self.rows[index]
        samples, _ = soundfile.read(path, dtype="float32")
        x = self.mel(torch.from_numpy(samples)).add_(1e-20).log_()
        x = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)
        for mask in self.masks if self.is_training else []:
            x = mask(x.unsqueeze(0)).squeeze(0)
        return x.t(), torch.tensor([speech_files.ALPHABET.index(letter) for letter in text])


def joined(batch):
    frames, labels = zip(*batch)
    lengths = torch.tensor([len(one) for one in frames])
    return torch.nn.utils.rnn.pad_sequence(frames, batch_first=True), lengths, list(labels)


class Batches(torch.utils.data.Sampler):
    """Utterances of similar length, up to so many seconds; another order in each epoch."""

    def __init__(self, rows, seconds):
        order, self.batches, now, total = sorted(range(len(rows)), key=lambda i: rows[i][1]), [], [], 0.0
        for i in order:
            if now and total + rows[i][1] > seconds:
                self.batches.append(now)
                now, total = [], 0.0
            now.append(i)
            total += rows[i][1]
        self.batches.append(now)

    def __iter__(self):
        while True:
            for place in torch.randperm(len(self.batches)).tolist():
                yield self.batches[place]


def network(net):
    features, _, (kind, arguments) = speech_files.NETS[net]
    encoder = getattr(models, kind)(features, **arguments)
    return features, models.SpeechModel(encoder, len(speech_files.ALPHABET))


def batches_of(options, features):
    sounds = Sounds(options.manifest, features, options.kind == "train")
    loader = torch.utils.data.DataLoader(sounds, batch_sampler=Batches(sounds.rows, options.batch_seconds), collate_fn=joined,
                                         num_workers=options.workers, prefetch_factor=4 if options.workers else None,
                                         worker_init_fn=lambda _: torch.set_num_threads(1))
    for number, batch in zip(range(options.updates), loader):
        yield number, batch


def train(options, features, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-3, foreach=True)
    run = torch.compile(model.scores, dynamic=True) if options.compile else model.scores
    model.train()
    for number, (frames, lengths, labels) in batches_of(options, features):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            scores, _, rows = run(frames, lengths)
        loss = torch.nn.functional.ctc_loss(scores.float().log_softmax(2).transpose(0, 1), torch.cat(labels), rows,
                                            torch.tensor([len(one) for one in labels]), blank=model.labels, reduction="sum",
                                            zero_infinity=True) / sum(map(len, labels))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print("UPD", number + 1, int(lengths.sum()), f"{loss.item():.4f}", flush=True)


def infer(options, features, model):
    model.eval()
    run = torch.compile(model.scores, dynamic=True) if options.compile else model.scores
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        for number, (frames, lengths, _) in batches_of(options, features):
            scores, _, rows = run(frames, lengths)
            for classes, count in zip(scores.argmax(2), rows.tolist()):
                spoken = torch.unique_consecutive(classes[:count])
                "".join(speech_files.ALPHABET[i] for i in spoken[spoken < model.labels].tolist())
            print("UPD", number + 1, int(lengths.sum()), 0.0, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("train", "infer"):
        one = kinds.add_parser(kind)
        one.add_argument("net", choices=speech_files.NETS)
        one.add_argument("manifest", type=pathlib.Path)
        one.add_argument("--batch-seconds", type=float, default=120)
        one.add_argument("--updates", type=int, default=20)
        one.add_argument("--workers", type=int, default=1, help="processes that make features")
        one.add_argument("--threads", type=int, default=2)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--compile", action="store_true")
        one.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    features, model = network(options.net)
    {"train": train, "infer": infer}[options.kind](options, features, model)
    print("END", json.dumps({"parameters": sum(weight.numel() for weight in model.parameters())}), flush=True)


if __name__ == "__main__":
    main()
