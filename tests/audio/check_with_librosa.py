#!/usr/bin/env python3
"""Compares decoding, resampling and features with librosa and kaldi-native-fbank on sounds of noise and tones.

    check_with_librosa.py FEATURES_TOOL [--seed 1]

Samples must agree to 1e-4, features to 1e-3 of the largest one. Griffin-Lim begins with the same first phases. It must give librosa's
sound to 1 % after up to 10 iterations, and come as near to the magnitudes, within 0.1 dB, after up to 50.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import kaldi_native_fbank
    import librosa
    import numpy
    import soundfile
except ImportError:
    print("librosa or kaldi-native-fbank is not installed: skipped")
    sys.exit(77)


def sound(rng, rate, seconds):
    time = numpy.arange(int(rate * seconds)) / rate
    tones = sum(numpy.sin(2 * numpy.pi * hz * time) for hz in (220, 1000, 3300)) / 8
    return (tones + rng.normal(0, 0.05, len(time)) * numpy.sin(3 * time) + 0.01).astype("float32")


def kaldi(make_options, make_computer, samples, rate, change):
    options = make_options()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = rate
    change(options)
    computer = make_computer(options)
    computer.accept_waveform(rate, (samples * 32768).tolist())
    computer.input_finished()
    return numpy.stack([computer.get_frame(i) for i in range(computer.num_frames_ready)])


def fbank(samples, rate, change=lambda options: None):
    return kaldi(kaldi_native_fbank.FbankOptions, kaldi_native_fbank.OnlineFbank, samples, rate, change)


def mfcc(samples, rate):
    return kaldi(kaldi_native_fbank.MfccOptions, kaldi_native_fbank.OnlineMfcc, samples, rate, lambda options: None)


def both_ends(options):
    options.frame_opts.snip_edges = False
    options.mel_opts.num_bins = 80
    options.mel_opts.high_freq = -400


def preemphasis(samples, rate):
    """Windows of 20 ms, as NeMo's Jasper has them."""
    emphasised = numpy.append(samples[:1], samples[1:] - numpy.float32(0.97) * samples[:-1])
    mels = librosa.feature.melspectrogram(y=emphasised, sr=rate, n_fft=1024, win_length=rate // 50, hop_length=rate // 100, n_mels=64,
                                          htk=True)
    return numpy.log(mels + 1e-6).T


def per_feature(samples, rate):
    """As NeMo's normalize_batch does it."""
    frames = preemphasis(samples, rate).astype("float64")
    return (frames - frames.mean(0)) / (frames.std(0, ddof=1) + 1e-5)


def over_all(samples, rate):
    """As OpenSeq2Seq does it."""
    frames = preemphasis(samples, rate).astype("float64")
    return (frames - frames.mean()) / (frames.std() + 1e-5)


def eighty(options):
    options.mel_opts.num_bins = 80


EXPECTED = {
    "librosa_mel": lambda y, rate: librosa.feature.melspectrogram(y=y, sr=rate).T,
    "librosa_mfcc": lambda y, rate: librosa.feature.mfcc(y=y, sr=rate).T,
    "librosa_reflect": lambda y, rate: librosa.feature.melspectrogram(
        y=y, sr=rate, n_fft=400, hop_length=160, n_mels=80, pad_mode="reflect").T,
    "librosa_preemphasis": preemphasis,
    "librosa_per_feature": per_feature,
    "librosa_global": over_all,
    "kaldi_fbank": fbank,
    "kaldi_fbank_80": lambda y, rate: fbank(y, rate, eighty),
    "kaldi_fbank_both_ends": lambda y, rate: fbank(y, rate, both_ends),
    "kaldi_mfcc": mfcc,
}


def numbers_of(tool, *words):
    lines = subprocess.run([tool, *words], check=True, capture_output=True, text=True).stdout.splitlines()
    return numpy.array([[float(word) for word in line.split()] for line in lines])


def compare(what, got, wanted, tolerance):
    if got.shape != wanted.shape:
        sys.exit(f"{what}: {got.shape} and {wanted.shape} numbers")
    # Logarithms of what is all but silent are the rounding of the transform.
    if "librosa_mel" in what or "librosa_reflect" in what:
        got, wanted = numpy.log(numpy.maximum(got, 1e-6)), numpy.log(numpy.maximum(wanted, 1e-6))
    largest = numpy.abs(got - wanted).max() / max(1.0, numpy.abs(wanted).max())
    print(f"{what}: {largest:.1e}")
    if not largest <= tolerance:
        sys.exit(f"{what}: differs by {largest} of the largest number")


class Phases(numpy.random.RandomState):
    """Hands librosa the phases that ours begins with: from other ones, the results of ten iterations lie up to 2 dB apart."""

    def __init__(self, turns):
        super().__init__()
        self.turns = turns

    def random(self, size=None):
        assert self.turns.shape == size, (self.turns.shape, size)
        return self.turns


def convergence(found, wanted):
    """20 log10 of the distance of a sound's magnitudes over their size."""
    got = numpy.abs(librosa.stft(found, n_fft=1024, hop_length=256))[:, :wanted.shape[1]]
    return 20 * numpy.log10(numpy.linalg.norm(got - wanted) / numpy.linalg.norm(wanted))


def compare_griffin_lim(tool, path, samples, seed):
    wanted = numpy.abs(librosa.stft(samples, n_fft=1024, hop_length=256))
    turns = numbers_of(tool, path, "first_phases", str(seed)).T
    for iterations in (1, 10, 50):
        for momentum in (0.0, 0.99):
            theirs = librosa.griffinlim(wanted, n_iter=iterations, hop_length=256, momentum=momentum, random_state=Phases(turns))
            level, ours = numpy.split(numbers_of(tool, path, "griffin_lim", str(iterations), str(momentum), str(seed))[:, 0], [1])
            wanted_level = convergence(theirs, wanted)
            apart = numpy.linalg.norm(ours - theirs) / numpy.linalg.norm(theirs)
            print(f"Griffin-Lim, {iterations} iterations, momentum {momentum}: {level[0]:.2f} dB, librosa {wanted_level:.2f} dB, "
                  f"sounds {apart:.1e} apart")
            if not abs(level[0] - wanted_level) <= 0.1:
                sys.exit(f"Griffin-Lim is {level[0] - wanted_level:.2f} dB farther off than librosa's")
            # Roundings of phases grow with the iterations: up to 2e-4 after 10, 4e-3 after 50.
            if iterations <= 10 and not apart <= 1e-2:
                sys.exit(f"the sounds differ by {apart} of their size")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = numpy.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for rate, seconds in ((16000, 1.234), (22050, 0.7), (8000, 2.0)):
            for ending, subtype in (("wav", "PCM_16"), ("flac", "PCM_24"), ("wav", "FLOAT")):
                path = str(pathlib.Path(folder) / f"{rate}.{ending}")
                soundfile.write(path, sound(rng, rate, seconds), rate, subtype=subtype)
                samples = soundfile.read(path, dtype="float32")[0]
                for to in (rate, 16000, 44100):
                    wanted = librosa.resample(samples, orig_sr=rate, target_sr=to)
                    compare(f"{rate} {subtype} at {to}", numbers_of(arguments.tool, path, "samples", str(to))[:, 0],
                            wanted, 1e-4)
                for preset, expected in EXPECTED.items():
                    compare(f"{rate} {subtype} {preset}", numbers_of(arguments.tool, path, preset),
                            expected(samples, rate), 1e-3)
            compare_griffin_lim(arguments.tool, path, samples, arguments.seed)


if __name__ == "__main__":
    main()
