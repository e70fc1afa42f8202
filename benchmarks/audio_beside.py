#!/usr/bin/env python3
"""Features of sounds and Griffin-Lim beside other packages, one core each, in turn.

    benchmarks/audio_beside.py --bench build/release/audio_bench --python PYTHON [--file WAV] [--rounds 5] [--out PAGE.md]

PYTHON has numpy and those of kaldi-native-fbank, torchaudio and librosa that are to be compared. Each reads the same samples before
the clock starts, of a minute of noise or of FILE:

- kaldi_fbank: 80 bands of 25 ms every 10 ms at 16 kHz, without dither: kaldi-native-fbank, torchaudio.compliance.kaldi
- librosa_mel: log-mel of 80 bands: torchaudio.transforms.MelSpectrogram, librosa.feature.melspectrogram
- tacotron_mel: 80 bands of 1,024 samples every 256 at 22.05 kHz, magnitudes: torchaudio, librosa
- griffin_lim: 32 iterations with momentum 0.99 on magnitudes of that: librosa.griffinlim, torchaudio.functional.griffinlim

The table has seconds of sound a second of time, medians over rounds of the median pass.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

import records

WORKS = {"kaldi_fbank": (16000, ("kaldi-native-fbank", "torchaudio"), 60), "librosa_mel": (16000, ("torchaudio", "librosa"), 60),
         "tacotron_mel": (22050, ("torchaudio", "librosa"), 60), "griffin_lim": (22050, ("librosa", "torchaudio"), 10)}
GOALS = {("kaldi_fbank", "kaldi-native-fbank"): 1.5, ("kaldi_fbank", "torchaudio"): 1.5, ("griffin_lim", "librosa"): 2}
LEAST = {"kaldi_fbank": 1500, "librosa_mel": 1500}  # seconds of sound a second
PEER = r"""
import sys, numpy
work, package, rate, seconds, passes, path = sys.argv[1:7]
rate, passes = int(rate), int(passes)
if path:
    import soundfile
    samples, found = soundfile.read(path, dtype="float32", always_2d=True)
    samples = samples.mean(1)
    assert found == rate, f"{path} has {found} Hz, not {rate}"
else:
    samples = numpy.random.default_rng(1).normal(0, 0.1, int(seconds) * rate).astype("float32")
tacotron = {"n_fft": 1024, "hop_length": 256}
small = {"n_fft": 512, "win_length": 400, "hop_length": 160}
if package == "kaldi-native-fbank":
    import kaldi_native_fbank as knf
    options = knf.FbankOptions()
    options.frame_opts.dither, options.frame_opts.samp_freq, options.mel_opts.num_bins = 0, rate, 80
    scaled = samples * 32768
    def run():
        computer = knf.OnlineFbank(options)
        computer.accept_waveform(rate, scaled)
        computer.input_finished()
        return computer.get_frame(computer.num_frames_ready - 1)
elif package == "torchaudio":
    import torch, torchaudio
    torch.set_num_threads(1)
    sound = torch.from_numpy(samples)
    if work == "kaldi_fbank":
        scaled = sound[None] * 32768
        run = lambda: torchaudio.compliance.kaldi.fbank(scaled, num_mel_bins=80, dither=0.0, sample_frequency=rate)
    elif work == "griffin_lim":
        window = torch.hann_window(1024)
        magnitudes = torch.stft(sound, 1024, 256, window=window, return_complex=True).abs()
        run = lambda: torchaudio.functional.griffinlim(magnitudes, window, 1024, 256, 1024, 1.0, 32, 0.99, None, True)
    else:
        sizes, power = (tacotron, 1.0) if work == "tacotron_mel" else (small, 2.0)
        mel = torchaudio.transforms.MelSpectrogram(rate, n_mels=80, power=power, norm="slaney", mel_scale="slaney", **sizes)
        run = lambda: mel(sound).clamp(min=1e-5).log()
else:
    import librosa
    if work == "griffin_lim":
        magnitudes = numpy.abs(librosa.stft(samples, **tacotron))
        run = lambda: librosa.griffinlim(magnitudes, n_iter=32, momentum=0.99, hop_length=256)
    else:
        sizes, power = (tacotron, 1.0) if work == "tacotron_mel" else (small, 2.0)
        run = lambda: numpy.log(numpy.maximum(
            librosa.feature.melspectrogram(y=samples, sr=rate, n_mels=80, power=power, **sizes), 1e-5))
run()
for number in range(1, passes + 1):
    run()
    print("UPD", number, len(samples) / rate, 0, flush=True)
"""


def speeds(options, command):
    """Seconds of sound a second, of each pass but the first."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    core = str(min(os.sched_getaffinity(0)))
    process = subprocess.Popen(["taskset", "-c", core, *map(str, command)], stdout=subprocess.PIPE, text=True, env=environment)
    found, before = [], None
    for line in process.stdout:
        now = time.perf_counter()
        if line.startswith("UPD"):
            if before is not None:
                found.append(float(line.split()[2]) / (now - before))
            before = now
    if process.wait() != 0 or not found:
        return []
    return found


def measure(options, work):
    rate, packages, seconds = WORKS[work]
    path = options.file or ""
    results = {name: [] for name in ("Stretto", *packages)}
    for _ in range(options.rounds):
        for name in results:
            if name == "Stretto":
                command = [options.bench, f"--work={work}", f"--seconds={seconds}", f"--rate={rate}", f"--passes={options.passes * 4}"]
                command += [f"--file={path}"] if path else []
            else:
                command = [options.python, "-c", PEER, work, name, rate, seconds, options.passes, path]
            if passes := speeds(options, command):
                results[name].append(statistics.median(passes))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="the program audio_bench")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--file", help="a WAV file at the rate of the work, instead of noise")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    options.bench = records.program(parser, options.bench)
    rows, missed = [], []
    for work in options.works:
        results = measure(options, work)
        if not results["Stretto"]:
            sys.exit(f"{options.bench} --work={work} failed")
        own = statistics.median(results["Stretto"])
        if own < LEAST.get(work, 0):
            missed.append(f"{work}: {own:,.0f} seconds of sound a second, not {LEAST[work]:,}")
        for name, values in results.items():
            if not values:
                print(f"{work}: {name} is not installed or failed: left out", file=sys.stderr)
                continue
            ratio, goal = own / statistics.median(values), GOALS.get((work, name))
            rows.append([work, name, records.spread(values, decimals=0), "" if name == "Stretto" else f"{ratio:.2f}",
                         (f"{LEAST[work]:,} a second" if work in LEAST else "") if name == "Stretto" else goal or ""])
            if goal and ratio < goal:
                missed.append(f"{work} beside {name}: {ratio:.2f}, not {goal}")
    body = records.table(["work", "program", "sound a second, in seconds", "Stretto is faster by", "goal"], rows)
    records.publish(records.page("Features of sounds beside other packages", ["One core each; medians over rounds (least – most)."], body,
                                 duration="minutes"), options.out)
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
