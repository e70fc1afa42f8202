#!/usr/bin/env python3
"""Speech as plain PyTorch recognises it: networks of torch_speech_models.py on mel filter banks of torchaudio.

    torch_speech.py train NET MANIFEST [--batch-seconds 120 --updates 20] [--workers 1] [--compile] [--bf16]
    torch_speech.py infer NET MANIFEST [--batch-seconds 120 --updates 20] [--workers 1] [--compile] [--bf16]
    torch_speech.py fit RECIPE TRAIN VALID TEXTS [--epochs N] [--workers 1] [--seed 1]

MANIFEST is a CSV file of speech_files.py. Each prints `UPD n frames loss` and `END {…}`. A data loader with worker processes reads files
and makes features, of batches that are cut from utterances sorted by length, so that little is padded; their order is drawn. Training has
SpecAugment, CTC and AdamW; inference takes the most probable class of each frame.

`fit` is a recipe of Stretto (a TOML file that speech_files.TWINS names) as PyTorch would have it: network, speeds, masks, optimizer,
schedule and epochs by its keys, first weights as PyTorch draws them. TRAIN and VALID are lists FILE<tab>TEXT. It keeps all sounds in memory
at 16 kHz, and writes what is heard in VALID to TEXTS, a line each.
"""
import argparse
import json
import math
import pathlib
import tomllib

import soundfile
import torch
import torchaudio

import speech_files
import torch_speech_models as models


class Frames:
    """From samples to normalised log-mel frames [T, F]."""

    def __init__(self, features, masks, window_seconds=speech_files.WINDOW_SECONDS, preemphasis=0.0):
        self.preemphasis, self.masks = preemphasis, masks
        self.mel = torchaudio.transforms.MelSpectrogram(
            speech_files.RATE, n_fft=512, win_length=int(window_seconds * speech_files.RATE),
            hop_length=int(speech_files.HOP_SECONDS * speech_files.RATE), n_mels=features, norm="slaney", mel_scale="slaney")

    def __call__(self, samples):
        if self.preemphasis:
            samples = torch.cat([samples[:1], samples[1:] - self.preemphasis * samples[:-1]])
        x = self.mel(samples).add_(1e-20).log_()
        x = (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)
        for mask in self.masks:
            x = mask(x.unsqueeze(0)).squeeze(0)
        return x.t()


def labels_of(text):
    return torch.tensor([speech_files.ALPHABET.index(letter) for letter in text if letter in speech_files.ALPHABET], dtype=torch.long)


def masks_of(count, width, frames):
    return [torchaudio.transforms.FrequencyMasking(width), torchaudio.transforms.TimeMasking(frames)] * count


class Sounds(torch.utils.data.Dataset):
    """Files of noise, read when they are due."""

    def __init__(self, manifest, features, is_training):
        self.rows = speech_files.read_manifest(manifest)
        self.frames = Frames(features, masks_of(2, 10, 20) if is_training else [])

    def __getitem__(self, index):
        path, _, text = self.rows[index]
        samples, _ = soundfile.read(path, dtype="float32")
        return self.frames(torch.from_numpy(samples)), labels_of(text)


class Clips(torch.utils.data.Dataset):
    """Recordings in memory, each played at one of the speeds."""

    def __init__(self, manifest, frames, speeds=(1.0,)):
        self.frames, self.speeds, self.sounds, self.rows = frames, speeds, [], []
        for path, text in speech_files.manifest_rows(manifest):
            samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
            sound = torchaudio.functional.resample(torch.from_numpy(samples.mean(1)), rate, speech_files.RATE)
            self.sounds.append(sound)
            self.rows.append((path, len(sound) / speech_files.RATE, speech_files.plain(text)))

    def __getitem__(self, index):
        sound, speed = self.sounds[index], self.speeds[int(torch.randint(len(self.speeds), ()))]
        if speed != 1.0:
            sound = torchaudio.functional.resample(sound, round(speech_files.RATE * speed), speech_files.RATE)
        return self.frames(sound), labels_of(self.rows[index][2])


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


def network(kind, features, arguments):
    encoder = getattr(models, kind)(features, **arguments)
    return models.SpeechModel(encoder, len(speech_files.ALPHABET))


def one_thread(_):
    torch.set_num_threads(1)


def loaded(sounds, batches, updates, workers):
    """(number, batch) of so many updates."""
    loader = torch.utils.data.DataLoader(sounds, batch_sampler=batches, collate_fn=joined, num_workers=workers,
                                         prefetch_factor=4 if workers else None, worker_init_fn=one_thread)
    yield from zip(range(updates), loader)


def batches_of(options, features):
    sounds = Sounds(options.manifest, features, options.kind == "train")
    return loaded(sounds, Batches(sounds.rows, options.batch_seconds), options.updates, options.workers)


def ctc_loss(scores, rows, labels, blank):
    """Of all utterances, for each label."""
    lengths = torch.tensor([len(one) for one in labels])
    return torch.nn.functional.ctc_loss(scores.float().log_softmax(2).transpose(0, 1), torch.cat(labels), rows, lengths, blank=blank,
                                        reduction="sum", zero_infinity=True) / int(lengths.sum())


def heard(scores, rows, blank):
    """The text of the most probable class of each row, of each utterance."""
    for classes, count in zip(scores.argmax(2), rows.tolist()):
        spoken = torch.unique_consecutive(classes[:count])
        yield "".join(speech_files.ALPHABET[i] for i in spoken[spoken < blank].tolist())


def update(optimizer, model, loss, clip):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def train(options, features, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-3, foreach=True)
    run = torch.compile(model.scores, dynamic=True) if options.compile else model.scores
    model.train()
    for number, (frames, lengths, labels) in batches_of(options, features):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            scores, _, rows = run(frames, lengths)
        loss = ctc_loss(scores, rows, labels, model.labels)
        update(optimizer, model, loss, 5.0)
        print("UPD", number + 1, int(lengths.sum()), f"{loss.item():.4f}", flush=True)


def infer(options, features, model):
    model.eval()
    run = torch.compile(model.scores, dynamic=True) if options.compile else model.scores
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        for number, (frames, lengths, _) in batches_of(options, features):
            scores, _, rows = run(frames, lengths)
            list(heard(scores, rows, model.labels))
            print("UPD", number + 1, int(lengths.sum()), 0.0, flush=True)


def optimizer_of(recipe, model, updates):
    """AdamW without decay of biases and norms, and a line and a cosine to zero, by the recipe's keys."""
    optim, warm = recipe["optim"], min(recipe["schedule"]["warmup_steps"], updates - 1)
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    others = [weight for weight in model.parameters() if weight.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": optim["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
                                  lr=optim["lr"], betas=(0.9, 0.98), foreach=True)

    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / (updates - warm)))
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def read_all(clips, seconds, model):
    """What is heard in each clip, in their order."""
    texts = [""] * len(clips.rows)
    model.eval()
    with torch.inference_mode():
        for places in Batches(clips.rows, seconds).batches:
            frames, lengths, _ = joined([clips[place] for place in places])
            scores, _, rows = model.scores(frames, lengths)
            for place, text in zip(places, heard(scores, rows, model.labels), strict=True):
                texts[place] = " ".join(text.split())
    return texts


def fit(options):
    recipe = tomllib.loads(options.recipe.read_text(encoding="utf-8"))
    features, (kind, arguments) = speech_files.TWINS[options.recipe.stem]
    changes, seconds = recipe["augment"], recipe["data"]["batch_seconds"]
    model = network(kind, features, arguments)
    masks = masks_of(changes["feature_masks"], changes["feature_mask_width"], changes["time_mask_frames"])
    form = {"window_seconds": 0.025, "preemphasis": 0.97}  # Stretto's defaults
    clips = Clips(options.train, Frames(features, masks, **form), changes["speeds"])
    batches = Batches(clips.rows, seconds)
    updates = (options.epochs or recipe["train"]["max_epochs"]) * len(batches.batches)
    optimizer, schedule = optimizer_of(recipe, model, updates)
    model.train()
    for number, (frames, lengths, labels) in loaded(clips, batches, updates, options.workers):
        scores, _, rows = model.scores(frames, lengths)
        loss = ctc_loss(scores, rows, labels, model.labels)
        update(optimizer, model, loss, recipe["optim"]["clip_norm"])
        schedule.step()
        print("UPD", number + 1, int(lengths.sum()), f"{loss.item():.4f}", flush=True)
    texts = read_all(Clips(options.valid, Frames(features, [], **form)), seconds, model)
    options.texts.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return model


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("train", "infer"):
        one = kinds.add_parser(kind)
        one.add_argument("net", choices=speech_files.NETS)
        one.add_argument("manifest", type=pathlib.Path)
        one.add_argument("--batch-seconds", type=float, default=120)
        one.add_argument("--updates", type=int, default=20)
        one.add_argument("--compile", action="store_true")
        one.add_argument("--bf16", action="store_true")
    one = kinds.add_parser("fit")
    for name in ("recipe", "train", "valid", "texts"):
        one.add_argument(name, type=pathlib.Path)
    one.add_argument("--epochs", type=int, default=0, help="0 = those of the recipe")
    for one in kinds.choices.values():
        one.add_argument("--workers", type=int, default=1, help="processes that make features")
        one.add_argument("--threads", type=int, default=2)
        one.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    if options.kind == "fit":
        model = fit(options)
    else:
        features, _, (kind, arguments) = speech_files.NETS[options.net]
        model = network(kind, features, arguments)
        {"train": train, "infer": infer}[options.kind](options, features, model)
    print("END", json.dumps({"parameters": sum(weight.numel() for weight in model.parameters())}), flush=True)


if __name__ == "__main__":
    main()
