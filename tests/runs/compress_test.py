#!/usr/bin/env python3
"""Runs that are made small: `stretto compress`, its grid, and `stretto bench`.

    tests/runs/compress_test.py build/release/stretto [TEST...]
"""
import atexit
import fcntl
import functools
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess

from harness import CONFIG, FULL, LABELS, Lab, check, main, wait_for, write_labels


def done(result):
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return result.stdout


def refused(result, *words, code=2):
    check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {result.stderr}")
    for word in words:
        check(word in result.stderr, f"no `{word}` in\n{result.stderr}")


@functools.cache
def shared(stretto):
    """A lab with one run, for tests that only read it."""
    lab = Lab(stretto, CONFIG)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    done(lab.train("run"))
    return lab, str(lab.root / "run")


def compressed(lab, run, name, *words):
    out = str(lab.root / name)
    return out, json.loads(done(lab.run([lab.stretto, "compress", run, "--run", out, "--json", *words])))


def model_of(lab, name):
    return next((lab.root / name / "checkpoints").glob("*/model.safetensors"))


def values_of(file):
    """The bytes behind the header of a safetensors file, which names the run."""
    data = file.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def score(lab, run):
    return json.loads(done(lab.run([lab.stretto, "eval", run, "--json"])))["nll"]


def eight_bits_are_a_third_of_the_size_and_score_alike(stretto):
    lab, run = shared(stretto)
    out, record = compressed(lab, run, "int8", "--bits", "8")
    result = record["result"]
    size = model_of(lab, "int8").stat().st_size
    check(size == result["model_bytes"], f"{size} bytes, {result['model_bytes']} in the record")
    check(size < 0.45 * result["fp32_bytes"], f"{size} of {result['fp32_bytes']} bytes")
    check(abs(score(lab, out) - score(lab, run)) < 0.05, "8 bits changed the score")
    names = {path.name for path in model_of(lab, "int8").parent.iterdir()}
    check("optimizer.safetensors" not in names, f"{names}")
    ways = [json.loads(done(lab.run([stretto, "eval", out, "--json", f"run.packed_weights={way}"])))["nll"] for way in ("codes", "numbers")]
    check(ways[0] != ways[1], "codes and numbers compute the same")
    check(abs(ways[0] - ways[1]) < 0.05, f"{ways}")
    lines = done(lab.run([stretto, "infer", out], input="the small house\n"))
    check(lines.count("\n") == 1, lines)


def a_text_encoder_of_eight_bits_gives_nearly_the_same_vectors(stretto):
    with Lab(stretto, LABELS) as lab:
        write_labels(lab)
        done(lab.train("labels"))
        run = str(lab.root / "labels")
        out, _ = compressed(lab, run, "int8", "--bits", "8")
        vectors = [json.loads(done(lab.run([stretto, "embed", one], input="the small house\n"))) for one in (run, out)]
    norms = [math.hypot(*vector) for vector in vectors]
    check(len(vectors[0]) == len(vectors[1]) > 1, f"{vectors}")
    cosine = sum(a * b for a, b in zip(*vectors)) / norms[0] / norms[1]
    check(0.99 < cosine and vectors[0] != vectors[1], f"cosine {cosine}")


def the_size_is_told_before_anything_is_rounded(stretto):
    lab, run = shared(stretto)
    out = str(lab.root / "told")
    said = done(lab.run([stretto, "compress", run, "--bits", "4", "--group", "32", "--run", out]))
    size = model_of(lab, "told").stat().st_size
    check(f"model.safetensors will have {size:,} bytes" in said, said)
    check("bits a weight" in said, said)


def what_was_made_before_stays_and_another_request_is_refused(stretto):
    lab, run = shared(stretto)
    out, first = compressed(lab, run, "again", "--bits", "6")
    before = model_of(lab, "again").stat().st_mtime_ns
    _, second = compressed(lab, run, "again", "--bits", "6")
    check(first == second, f"{first} and {second}")
    check(model_of(lab, "again").stat().st_mtime_ns == before, "it was made anew")
    refused(lab.run([stretto, "compress", run, "--bits", "4", "--run", out]), "another request", '"bits":6', '"bits":4')
    refused(lab.run([stretto, "compress", out, "--bits", "4", "--run", out + "4"]), "compressed already")
    refused(lab.run([stretto, "compress", run, "--bits", "4", "--group", "7", "--run", out + "7"]), "groups of 7")
    model = model_of(lab, "again")
    whole = model.read_bytes()
    flipped = bytearray(whole)
    flipped[-100] ^= 4  # of the last scale or bias
    model.write_bytes(flipped)
    refused(lab.run([stretto, "infer", out], input="the small house\n"), "model.safetensors", code=65)
    model.write_bytes(whole[:-100])
    refused(lab.run([stretto, "compress", run, "--bits", "6", "--run", out]), "model.safetensors", code=65)


def a_damaged_record_is_named(stretto):
    lab, run = shared(stretto)
    out, _ = compressed(lab, run, "record", "--bits", "8")
    path = lab.root / "record/compress.json"
    whole = path.read_text()
    number = str(json.loads(whole)["result"]["model_bytes"])
    for damaged in (whole.replace(number, '"many"'), whole.replace(number, f"1{number}"), whole[:-30], "[]"):
        check(damaged != whole, "the test is stale")
        path.write_text(damaged)
        refused(lab.run([stretto, "compress", run, "--bits", "8", "--run", out]), "compress.json", code=65)


def a_run_with_a_damaged_file_is_not_taken_for_a_whole_one(stretto):
    lab, run = shared(stretto)
    out, _ = compressed(lab, run, "files", "--bits", "8")
    folder = lab.root / "files"
    for path in (folder / "config.toml", folder / "run.json", *(folder / "tokenizer").iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:len(whole) // 2])
        refused(lab.run([stretto, "compress", run, "--bits", "8", "--run", out]), path.name, code=65)
        path.write_bytes(whole)
    said = lab.run([stretto, "compress", run, "--bits", "8", "--run", out])
    done(said)
    check("is there already" in said.stderr, said.stderr)


def names_that_are_not_utf_8_are_compressed(stretto):
    lab, run = shared(stretto)
    odd = os.fsencode(lab.root) + b"/odd\xff"
    shutil.copytree(os.fsencode(run), odd)
    grid = lab.root / "odd.toml"
    grid.write_text("[grid]\nbits = [8]\ntime = false\n")
    command = [stretto, "compress", odd, "--grid", str(grid), "--dir", os.fsencode(lab.root) + b"/odd-sweep\xff", "--json"]
    points = [json.loads(done(lab.run(command)))["points"] for _ in range(2)]
    check(len(points[0]) == 1 and points[0] == points[1], f"{points}")
    done(lab.run([stretto, "compress", odd, "--bits", "8", "--run", odd + b"8", "--json"]))
    said = lab.run([stretto, "compress", odd, "--bits", "8", "--run", odd + b"8", "--json"])
    done(said)
    check("is there already" in said.stderr, said.stderr)


def a_kill_at_any_call_leaves_no_half_of_a_run(stretto):
    """For every 7th call, in CI every 31st."""
    lab, run = shared(stretto)
    out = lab.root / "killed-call"
    for n in range(1, 2000, 7 if FULL else 31):
        command = [stretto, "compress", run, "--bits", "8", "--prune", "0.3", "--run", str(out)]
        code = lab.run(command, env={"STRETTO_FAILPOINT": f"*:kill:{n}"}).returncode
        check(code in (0, -signal.SIGKILL), f"failpoint {n}: {code}")
        whole = out.exists()
        check(not whole or (out / "compress.json").is_file(), f"failpoint {n}: half of a run")
        said = lab.run(command)
        done(said)
        check(("is there already" in said.stderr) == whole, f"failpoint {n}: {said.stderr}")
        check(not list(lab.root.glob(".tmp-killed-call*")), f"failpoint {n}: what a killed process left is still there")
        if code == 0:
            return
        shutil.rmtree(out)
    check(False, "the failpoints never ran out")


def pruned_weights_are_zero_with_any_rounding(stretto):
    lab, run = shared(stretto)
    for rounding in ("nearest", "least_error", "calibrated"):
        out, record = compressed(lab, run, f"pruned-{rounding}", "--bits", "8", "--prune", "0.4", "--rounding", rounding)
        zeros = record["result"]["sparsity"]
        check(0.39 < zeros < 0.41, f"{rounding}: {zeros}")
        check(score(lab, out) < 10, rounding)
        names = {path.name for path in model_of(lab, f"pruned-{rounding}").parent.iterdir()}
        check("masks.safetensors" in names, f"{names}")
    out, record = compressed(lab, run, "pruned", "--prune", "0.4", "--prune-scope", "layer")
    check("errors" not in record["result"], "nothing was rounded")
    check(record["result"]["bits_per_weight"] == 32, f"{record['result']}")
    check(score(lab, out) < 10, "fp32")
    refused(lab.run([stretto, "compress", run, "--prune", "1", "--run", out + "-all"]), "leaves nothing of")
    # Other tensors are pruned where some are kept.
    kept = ["--prune", "0.4", "--prune-scope", "layer", "--keep", "*embed*"]
    refused(lab.run([stretto, "compress", run, *kept, "--run", out]), "another request", "kept")


def parts_that_were_taken_out_leave_a_model_that_trains_and_rounds(stretto):
    lab, run = shared(stretto)
    out, record = compressed(lab, run, "narrow", "--remove-units", "0.5")
    check([stack["units"] for stack in record["result"]["stacks"]] == [32, 32], f"{record}")
    check(score(lab, out) > 0, "no score")
    again = json.loads(done(lab.run([stretto, "compress", run, "--remove-units", "0.5", "--run", out, "--json"])))
    check(again == record, f"{again}")
    eight, _ = compressed(lab, out, "narrow8", "--bits", "8")
    check(score(lab, eight) > 0, "no score of 8 bits")


def other_data_calibrate_and_those_of_another_vocabulary_are_refused(stretto):
    lab, run = shared(stretto)
    for side, words in (("src", "old new good"), ("tgt", "alt neu gut")):
        (lab.root / f"other.{side}").write_text(f"{words}\n" * 8)
        (lab.root / f"foreign.{side}").write_text("Ωμέγα ждёт чудо\n" * 8)

    def words(name):
        return ("--bits", "4", "--rounding", "calibrated", "--calibrate", f"data.valid_src={lab.root}/{name}.src",
                "--calibrate", f"data.valid_tgt={lab.root}/{name}.tgt")

    own, _ = compressed(lab, run, "own-data", *words("valid"))
    other, _ = compressed(lab, run, "other-data", *words("other"))
    values = [values_of(model_of(lab, name)) for name in ("own-data", "other-data")]
    check(values[0] != values[1], "the weights do not depend on the data")
    check(score(lab, other) > 0, "no score")
    check("other.src" not in (lab.root / "other-data/config.toml").read_text(), "calibration data in the configuration")
    refused(lab.run([stretto, "compress", run, "--run", str(lab.root / "foreign"), *words("foreign")]), "<unk>", code=65)
    check(not (lab.root / "foreign").exists(), "half of a run is there")
    refused(lab.run([stretto, "compress", run, "--run", own + "2", "--bits", "4", "--rounding", "calibrated", "--calibrate",
                     "model.d_model=3"]), "model.d_model")


def calibrated_weights_are_the_same_for_any_threads(stretto):
    lab, _ = shared(stretto)
    done(lab.train("threaded", "train.max_steps=10", "schedule.warmup_steps=2", "run.threads=0"))
    files = []
    for threads in ("1", "2"):
        out = str(lab.root / f"threads{threads}")
        done(lab.run([stretto, "compress", str(lab.root / "threaded"), "--bits", "4", "--group", "32", "--rounding", "calibrated",
                      "--run", out], env={"OMP_NUM_THREADS": threads}))
        files.append(values_of(model_of(lab, f"threads{threads}")))
    check(files[0] == files[1], "the weights differ")


def an_export_of_tensors_keeps_packed_weights(stretto):
    lab, run = shared(stretto)
    out, record = compressed(lab, run, "for-export", "--bits", "4", "--group", "32")
    packed, wide = lab.root / "packed", lab.root / "wide"
    done(lab.run([stretto, "export", out, "--format", "safetensors", str(packed)]))
    small = (packed / "model.safetensors").stat().st_size
    check(small <= record["result"]["model_bytes"], f"{small} bytes, {record['result']['model_bytes']} in the run")
    check((packed / "config.toml").is_file() and any((packed / "tokenizer").iterdir()), "config or tokenizer is missing")
    done(lab.run([stretto, "export", out, "--format", "safetensors", "--weights", "float32", str(wide)]))
    large = (wide / "model.safetensors").stat().st_size
    check(large > 0.9 * record["result"]["fp32_bytes"], f"{large} of {record['result']['fp32_bytes']} bytes")
    refused(lab.run([stretto, "export", out, "--format", "safetensors", "--weights", "int8", str(lab.root / "no")]), "--weights int8")
    said = lab.run([stretto, "export", out, "--format", "ctranslate2", str(lab.root / "ct2")])
    done(said)
    check("4 bits are written as int8" in said.stderr, said.stderr)


def a_grid_goes_on_where_it_stopped(stretto):
    lab, run = shared(stretto)
    grid = lab.root / "grid.toml"
    grid.write_text("[grid]\nbits = [32, 8, 4]\nsparsity = [0, 0.5]\nseconds = 0.1\n")
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(lab.root / "sweep"), "--json"]
    first = json.loads(done(lab.run(command, timeout=300)))
    names = [point["point"] for point in first["points"]]
    check(names == ["run-32bit", "run-32bit-s0.5", "run-8bit", "run-8bit-s0.5", "run-4bit", "run-4bit-s0.5"], f"{names}")
    for point in first["points"]:
        check(point["rate"] > 0 and point["bytes"] > 0, f"{point}")
    weights = {point["weights"] for point in first["points"]}
    check(len(weights) == 1 and weights.pop() < 1e8, f"weights of one model: {weights}")
    sizes = [point["bytes"] for point in first["points"][::2]]
    check(sizes[0] > sizes[1] > sizes[2], f"{sizes}")
    (lab.root / "sweep/results/run-8bit.json").unlink()
    second = json.loads(done(lab.run(command, timeout=300)))
    check([point["score"] for point in first["points"]] == [point["score"] for point in second["points"]], "scores differ")
    grid.write_text("[grid]\nbits = [8]\ngroup = 16\ntime = false\n")
    third = json.loads(done(lab.run(command, timeout=300)))
    check(third["points"][0]["bytes"] > sizes[1], f"groups of 16 have more scales: {third}")
    grid.write_text("[grid]\nbits = [32, 8, 4]\nsparsity = [0, 0.5]\nseconds = 0.1\n")
    done(lab.run(command, timeout=300))
    page = (lab.root / "sweep/sweep.html").read_text()
    check("nll against the size of the model" in page, "no chart")
    check((lab.root / "sweep/sweep.tsv").read_text().count("\n") == 7, "sweep.tsv")


def a_grid_makes_points_with_damaged_results_anew(stretto):
    lab, run = shared(stretto)
    grid, folder = lab.root / "damaged.toml", lab.root / "damaged"
    grid.write_text("[grid]\nbits = [8, 4]\ntime = false\n")
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(folder), "--json"]
    first = json.loads(done(lab.run(command, timeout=300)))["points"]
    result = folder / "results/run-8bit.json"
    whole = result.read_text()
    number = str(first[0]["bytes"])
    for damaged in (whole.replace(number, f"1{number}"), whole[:len(whole) // 2], ""):
        check(damaged != whole, "the test is stale")
        result.write_text(damaged)
        said = lab.run(command, timeout=300)
        check(json.loads(done(said))["points"] == first, "another result")
        check("run-8bit.json is damaged" in said.stderr and "run-4bit.json" not in said.stderr, said.stderr)
    # What a kill leaves while a point of another request is removed: all but the files that went first.
    point = folder / "points/run-4bit"
    grid.write_text("[grid]\nbits = [8, 4]\ngroup = 16\ntime = false\n")
    killed = lab.run(command, env={"STRETTO_FAILPOINT": "checkpoint.unlink:kill:5"})
    check(killed.returncode == -signal.SIGKILL, f"the test is stale: {killed.returncode} {killed.stderr}")
    check(any((folder / "points" / name / "compress.json").exists() for name in ("run-8bit", "run-4bit")), "no record is left")
    done(lab.run(command, timeout=300))
    check(point.is_dir(), "no point")


def a_grid_makes_points_with_damaged_folders_anew(stretto):
    lab, run = shared(stretto)
    grid, folder = lab.root / "broken.toml", lab.root / "broken"
    grid.write_text("[grid]\nbits = [8]\ntime = false\n")
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(folder), "--json"]
    whole = lab.run(command)
    check(whole.returncode == 0, whole.stderr)
    point = next((folder / "points").iterdir())
    result = folder / f"results/{point.name}.json"

    def cut():
        model = next(point.glob("checkpoints/*/model.safetensors"))
        model.write_bytes(model.read_bytes()[:1000])

    for harm in (cut, (point / "config.toml").unlink, lambda: shutil.rmtree(point)):
        for is_known in (True, False):
            harm()
            if not is_known:
                result.unlink()
            said = lab.run(command)
            check(said.returncode == 0 and said.stdout == whole.stdout, said.stderr)
            check(next(point.glob("checkpoints/*/model.safetensors")).stat().st_size > 1000, "the folder is as it was")


def what_is_there_is_damaged_and_how_it_is_made_again(stretto):
    lab, run = shared(stretto)
    packed, _ = compressed(lab, run, "cut", "--bits", "8")
    model = next(pathlib.Path(packed).glob("checkpoints/*/model.safetensors"))
    model.write_bytes(model.read_bytes()[:1000])
    command = [stretto, "compress", run, "--bits", "8", "--run", str(packed)]
    refused(lab.run(command), "and give the same command again", code=65)
    shutil.rmtree(packed)
    check(lab.run(command).returncode == 0, "the remedy was none")
    refused(lab.run([stretto, "compress", run, "--bits", "8", "--run", run]), "is the run that is compressed")


def a_grid_of_a_run_in_training_and_a_second_one_are_refused(stretto):
    lab, run = shared(stretto)
    grid = lab.root / "live.toml"
    grid.write_text("[grid]\nbits = [8]\ntime = false\n")
    (lab.root / "live").mkdir()
    for folder, words in ((pathlib.Path(run), "is being trained"), (lab.root / "live", "is in use by")):
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            refused(lab.run([stretto, "compress", run, "--grid", str(grid), "--dir", str(lab.root / "live")]), words)


def a_point_that_fails_is_named_and_packed_runs_are_refused(stretto):
    lab, run = shared(stretto)
    grid, folder = lab.root / "fails.toml", lab.root / "fails"
    grid.write_text("[grid]\nbits = [8]\nsparsity = [0, 0.999999]\ntime = false\n")
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(folder), "--json"]
    result = lab.run(command, timeout=300)
    refused(result, "run-8bit-s0.999999: stretto compress ended with code 2: ", "leaves nothing of")
    said = json.loads(result.stdout)
    check(said["failed"] == ["run-8bit-s0.999999"] and len(said["points"]) == 1, f"{said}")
    page = (folder / "sweep.html").read_text()
    check("1 point failed" in page and ">running<" not in page, "the page does not say that it ended")
    packed, _ = compressed(lab, run, "for-grid", "--bits", "8")
    refused(lab.run([stretto, "compress", packed, *command[3:-2], str(lab.root / "none")]), "compressed already")
    refused(lab.run([stretto, "compress", run, run + "/", *command[3:]]), "is named twice")


def a_grid_scores_an_imported_model_on_the_data_that_it_names(stretto):
    lab, _ = shared(stretto)
    folder = pathlib.Path(__file__).resolve().parents[1] / "assets/transformers/gpt2"
    run = str(lab.root / "gpt2")
    done(lab.run([stretto, "import", str(folder), "--run", run]))
    (lab.root / "dev.txt").write_text("".join(f"{i} the quick brown fox\n" for i in range(100)))
    grid = lab.root / "imported.toml"
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(lab.root / "imported-sweep"), "--json"]
    grid.write_text("[grid]\nbits = [32, 8]\nseconds = 0.1\n")
    refused(lab.run(command, timeout=300), "no test or validation data")
    grid.write_text("[grid]\nbits = [32, 8]\nseconds = 0.1\ndata = [\"gone.txt\"]\n")
    refused(lab.run(command, timeout=300), f"no file {lab.root}/gone.txt")
    grid.write_text("[grid]\nbits = [32, 8]\nseconds = 0.1\ndata = [\"dev.txt\"]\n")
    points = json.loads(done(lab.run(command, timeout=300)))["points"]
    own = json.loads(done(lab.run([stretto, "eval", run, "--json", "--data", str(lab.root / "dev.txt")])))["nll"]
    check(points[0]["score"] == own and points[1]["score"] > 0, f"{points}, {own}")
    check(all(point["rate"] > 0 for point in points), f"{points}")
    (lab.root / "dev.txt").write_text("".join(f"{i} lazy dogs\n" for i in range(100)))
    other = json.loads(done(lab.run(command, timeout=300)))["points"]
    check(other[0]["score"] != own and other[1]["score"] != points[1]["score"], "other text has the scores of that before")
    grid.write_text("[grid]\nbits = [32, 8]\nseconds = 0.2\ndata = [\"dev.txt\"]\n")
    timed = json.loads(done(lab.run(command, timeout=300)))["points"]
    check(timed[0]["rate"] != other[0]["rate"], "speed was measured for as long as before")


def a_grid_that_is_killed_in_a_point_goes_on(stretto):
    lab, run = shared(stretto)
    grid, folder = lab.root / "killed.toml", lab.root / "killed"
    grid.write_text("[grid]\nbits = [8, 4, 3]\nseconds = 0.1\n")
    command = [stretto, "compress", run, "--grid", str(grid), "--dir", str(folder), "--json"]
    for number, name in enumerate((signal.SIGKILL, signal.SIGTERM)):
        process = subprocess.Popen(command, env=lab.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(list(folder.glob("points/*/compress.json"))) > number, f"point {number + 1}", process)
        process.send_signal(name)
        process.stderr.read()
        code = process.wait(timeout=60)
        check(code == (75 if name == signal.SIGTERM else -signal.SIGKILL), f"it left with {code}")
    points = json.loads(done(lab.run(command, timeout=300)))["points"]
    check([point["bits"] for point in points] == [8, 4, 3], f"{points}")
    check(not list(folder.glob("points/.tmp-*")), "what a killed process left is still there")


def the_shipped_grid_takes_two_minutes(stretto):
    if not FULL:
        return
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    lab = Lab(stretto, CONFIG)
    atexit.register(shutil.rmtree, lab.root, ignore_errors=True)
    run = str(lab.root / "reviews")
    done(lab.run([stretto, "train", str(root / "configs/smoke/text_classification.toml"), "--run", run], timeout=300))
    command = [stretto, "compress", run, "--grid", str(root / "configs/smoke/compress.toml"), "--dir", str(lab.root / "sweep"), "--json"]
    points = {point["point"]: point for point in json.loads(done(lab.run(command, timeout=300)))["points"]}
    whole, eight = points["reviews-32bit"], points["reviews-8bit"]
    check(eight["bytes"] <= 0.3 * whole["bytes"], f"{eight['bytes']} of {whole['bytes']} bytes")
    check(abs(eight["score"] - whole["score"]) < 0.02, f"{eight['score']} after {whole['score']}")


def bench_measures_each_precision(stretto):
    lab, run = shared(stretto)
    said = json.loads(done(lab.run([stretto, "bench", run, "--seconds", "0.1", "--precision", "fp32,int8,int4", "--json"])))
    check([one["precision"] for one in said["precisions"]] == ["fp32", "int8", "int4"], f"{said}")
    for one in said["precisions"]:
        check(one["rate"] > 0, f"{one}")
        check(0.99 < sum(module["share"] for module in one["modules"]) < 1.01, f"{one['modules']}")
    check(said["precisions"][1]["memory_bytes"] < said["precisions"][0]["memory_bytes"], "int8 takes no less memory")
    out, _ = compressed(lab, run, "for-bench", "--bits", "8")
    text = done(lab.run([stretto, "bench", out, "--seconds", "0.1"]))
    check("stored: " in text and "fp32: " in text, text)
    refused(lab.run([stretto, "bench", out, "--precision", "int4"]), "there is no int4")
    done(lab.run([stretto, "bench", str(lab.config), "--seconds", "0.1", "--precision", "fp32,int8"]))


TESTS = (eight_bits_are_a_third_of_the_size_and_score_alike, a_text_encoder_of_eight_bits_gives_nearly_the_same_vectors,
         the_size_is_told_before_anything_is_rounded,
         what_was_made_before_stays_and_another_request_is_refused, a_damaged_record_is_named,
         a_run_with_a_damaged_file_is_not_taken_for_a_whole_one, names_that_are_not_utf_8_are_compressed,
         a_kill_at_any_call_leaves_no_half_of_a_run, pruned_weights_are_zero_with_any_rounding,
         parts_that_were_taken_out_leave_a_model_that_trains_and_rounds,
         other_data_calibrate_and_those_of_another_vocabulary_are_refused,
         calibrated_weights_are_the_same_for_any_threads, an_export_of_tensors_keeps_packed_weights, a_grid_goes_on_where_it_stopped,
         a_grid_makes_points_with_damaged_results_anew, a_grid_makes_points_with_damaged_folders_anew,
         what_is_there_is_damaged_and_how_it_is_made_again, a_point_that_fails_is_named_and_packed_runs_are_refused,
         a_grid_scores_an_imported_model_on_the_data_that_it_names,
         a_grid_of_a_run_in_training_and_a_second_one_are_refused, a_grid_that_is_killed_in_a_point_goes_on,
         the_shipped_grid_takes_two_minutes, bench_measures_each_precision)

if __name__ == "__main__":
    main({test.__name__: test for test in TESTS})
