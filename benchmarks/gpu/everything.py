#!/usr/bin/env python3
"""What a machine with a GPU can tell us; benchmarks/gpu/run.sh starts it.

Parts, in the order in which they run (--only takes some of them, in its own order; time is spent on them in this order). Neighbours
among those marked * say nothing about time, and run all at once:

  kernels     the kernels' and optimizer steps' tests on the GPU
  sanitizer * these under compute-sanitizer (memcheck, racecheck, synccheck), all other tests of the engine beside
  attention * tests of attention under compute-sanitizer (slow: libtorch's kernels are in it)
  resume    * a run stopped and resumed against the same run at once, and against itself, to the bit
  oom       * a run whose allocator gets too little memory
  runs      * training as users meet it, on the GPU: the smoke recipes against their stored curves, resuming after signals and kills,
              what holds for every family of models
  core      * tests of what has no libtorch
  speed       {fp32, mixed_bf16, tf32, mixed_fp16} x {base, big}: target tokens/s, all losses, peak memory of tensors and of the GPU, load
  nccl        every collective of the NCCL backend, with one process: right, beside a busy default stream (is overlap real?), and with
              no memory left (does a failed allocation still report?); with several GPUs also between them, and training with and
              without dist.overlap
  optimizer   bytes a second of every optimizer's step and of the gradient's norm beside the GPU's bandwidth; some beside torch.optim
  operators   the own kernels, forward and backward, beside the bandwidth and libtorch's operators
  peers       torch.nn.Transformer on the same text, in turn with Stretto
  understanding  BERT base: masked words and labels, in turn with transformers
  compiled    masked words in turn with transformers under torch.compile
  profile     time by kernel of some updates, by ncu
  more        dropout of attention weights, larger micro-batches, what auto_fp16 chooses

Writes into --out as results come: summary.md, results.json, losses.csv (all losses of all trainings) and log.txt. A step ends when its
own time or the whole budget is up; a step without time left is named. --dry-run prints what would run. --device cpu with --tiny tries
the script itself where there is no GPU.
"""
import argparse
import datetime
import importlib
import itertools
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

from session import Session, has_torch
from trainings import ROOT, Trainings, make_text

TEXTS = ("phrasebook", "reversal", "portraits", "reviews")  # programs that write what the smoke recipes train on
PROGRAMS = ("stretto", "engine_tests", *TEXTS)  # needed
MORE_PROGRAMS = ("core_tests", "reader_tests", "optimizer_bench", "operators_bench", "nccl_check")
NCCL_QUESTIONS = ("collectives", "all_reduce of 240 MB", "overlap", "late buffer", "words without memory")  # of nccl_check
ON_GPU = "CudaKernels.*:*OnCuda*"
ATTENTION = "*Attention*"  # among them libtorch's kernels, which racecheck reports
# These know the folder in which they were built.
WHERE_BUILT = "*Command*.*:CommandLine.*:Inspect.*:Lint.*:LoadExperiment.*:SameExperiment.*:PublishedCases.*:ReversalProgram.*"


def give_up(what, advice):
    print(f"error: {what}\n  {advice}", file=sys.stderr)
    sys.exit(2)


def library_path(build):
    """Folders of libraries that the programs look in first, or "" where the build finds its own."""
    folders = []
    torch = os.environ.get("STRETTO_LIBTORCH")
    if not torch:
        needs = subprocess.run(["ldd", build / "engine_tests"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        if re.search(r"lib(torch|c10)\S* => not found", needs):
            found = subprocess.run([sys.executable, "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            torch = found.stdout.strip()
    if torch:
        folders.append(pathlib.Path(torch) / "lib")
        folders += sorted(pathlib.Path(torch).parent.glob("nvidia/*/lib"))
    if (build / "lib").is_dir():
        folders.append(build / "lib")
    return ":".join(map(str, folders))


def make_programs(build, work, device):
    """Small scripts that start each program with its libraries; `train_on_device` is stretto with run.device."""
    path = library_path(build)
    (work / "bin").mkdir()
    made = {}

    def script(name, line):
        file = work / "bin" / name
        libraries = f'export LD_LIBRARY_PATH="{path}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n' if path else ""
        file.write_text(f"#!/bin/sh\n{libraries}{line}\n")
        file.chmod(0o755)
        made[name] = file

    for name in (*PROGRAMS, *MORE_PROGRAMS):
        if os.access(build / name, os.X_OK):
            script(name, f'exec "{build / name}" "$@"')
    stretto = f'exec "{build / "stretto"}" "$@"'
    script("train_on_device", f'if [ "$1" = train ]; then {stretto} run.device={device}; fi\n{stretto}')
    return made


def smi(query):
    """What nvidia-smi says of the first GPU, "" where there is none."""
    try:
        line = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return ""
    return line.stdout.splitlines()[0] if line.returncode == 0 and line.stdout.strip() else ""


def count_gpus():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except FileNotFoundError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


class Everything:
    def __init__(self, session, programs, work, options):
        self.session, self.programs, self.work, self.options = session, programs, work, options
        self.trainings = Trainings(session, programs, work, options)

    def tests(self, name, limit, tests, run=None, must_run=True, fault=None):
        """A program of tests; on a GPU none may have skipped itself for lack of one. `fault` finds what else is wrong in the output."""
        done = self.session.run(name, limit, [*(run or []), self.programs["engine_tests"], f"--gtest_filter={tests}"], note=False,
                                env={"OMP_NUM_THREADS": "2"})
        if not done:
            return
        ran = re.search(r"\[==========\] (\d+) tests? from", done.output)
        passed, skipped = (re.search(rf"\[\s+{word}\s+\] (\d+) test", done.output) for word in ("PASSED", "SKIPPED"))
        counts = ", ".join(f"{m[1]} {word}" for m, word in ((ran, "ran"), (passed, "passed"), (skipped, "skipped")) if m)
        problem = ""
        if not ran or ran[1] == "0":
            problem = "no test ran"
        elif must_run and skipped and self.session.has_gpu:
            problem = "the GPU was not found"
        elif not done.passed:
            problem = f"exit {done.status}"
        elif fault and (found := fault(done.output)):
            problem = found
        if done.passed or problem != f"exit {done.status}":
            self.session.note(name, (f"FAILED: {problem}; " if problem else "passed: ") + counts, done.seconds, fail=bool(problem))

    # --- the parts -------------------------------------------------------------------------------------

    def kernels(self):
        self.tests("tests on the GPU", 90, ON_GPU)

    def sanitize(self, tool, limit, tests, name="", own_alone=False):
        """`own_alone`: what the tool finds counts in Stretto's kernels alone, since libtorch's run in these tests too."""
        label = f"compute-sanitizer {tool}{name}"
        if not self.session.dry_run and not shutil.which("compute-sanitizer"):
            self.session.note(label, "not run: it is not installed", fail=True)
            return
        self.tests(label, limit, tests, ["compute-sanitizer", "--tool", tool, *([] if own_alone else ["--error-exitcode", "1"]),
                                         "--print-limit", "1000" if own_alone else "20"], fault=self.own_fault if own_alone else None)

    @staticmethod
    def own_fault(output):
        found = [line for line in output.splitlines() if line.startswith("=========") and "stretto" in line and "access at" in line]
        return f"{len(found)} reports, first: {found[0][:200]}" if found else ""

    def sanitizer(self):
        own = f"{ON_GPU}-{ATTENTION}"
        return [lambda: self.sanitize("memcheck", 200, own), lambda: self.sanitize("racecheck", 200, own),
                lambda: self.sanitize("synccheck", 200, own), lambda: self.tests("tests of the engine", 200, f"*-{ON_GPU}", must_run=False)]

    def attention(self):
        attention = f"CudaKernels.{ATTENTION}"
        return [lambda: self.sanitize("memcheck", 200, attention, ", attention"),
                lambda: self.sanitize("racecheck", 200, attention, ", attention", own_alone=True)]

    def speed(self):
        self.trainings.all_speeds()

    def resume(self):
        return [lambda: self.trainings.resume_in("fp32"), lambda: self.trainings.resume_in("mixed_bf16")]

    def more(self):
        self.trainings.more_speeds()

    def oom(self):
        return [self.trainings.out_of_memory]

    def peers(self):
        self.trainings.peers()

    def understanding(self):
        self.trainings.understanding()

    def compiled(self):
        self.trainings.understanding(compiled=True)

    def profile(self):
        if not self.session.dry_run and not shutil.which("ncu"):
            self.session.note("time by kernel", "not run: ncu is not installed", fail=True)
            return
        self.trainings.profile()

    def needs(self, program, name):
        if self.session.dry_run or program in self.programs:
            return True
        self.session.note(name, f"not run: the build has no {program}", fail=True)
        return False

    def nccl(self):
        """Collectives; is overlap real; do words arrive when the memory is gone. Between GPUs where there are several."""
        if not self.needs("nccl_check", "NCCL"):
            return
        check = self.programs.get("nccl_check", "nccl_check")
        gpus = 2 if self.session.dry_run else count_gpus()
        self.nccl_answers("one process", [check])
        if gpus < 2:
            self.session.note("NCCL between GPUs, and overlap there", "not run: there is one GPU")
            return
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        self.nccl_answers(f"{gpus} processes", ["mpirun", *root, "-np", str(gpus), "--bind-to", "none", check])
        self.trainings.overlap(gpus)

    def nccl_answers(self, who, command):
        done = self.session.run(f"NCCL, {who}", 90, command)
        for line in done.output.splitlines() if done else []:
            question, colon, answer = line.partition(": ")
            if colon and question in NCCL_QUESTIONS:
                self.session.row("NCCL", ("processes", "question", "answer"), [who, question, answer])

    def optimizer(self):
        if not self.needs("optimizer_bench", "optimizer steps"):
            return
        for elements in (1_000_000,) if self.options.tiny else (8_000_000, 60_000_000, 210_000_000):
            done = self.session.run(f"optimizer steps, {elements:,} numbers", 45, [
                self.programs.get("optimizer_bench", "optimizer_bench"), f"--elements={elements}", "--rounds=9", f"--device={self.options.device}"])
            if not (done and done.passed):
                continue
            first, _, *rules = done.output.splitlines()
            head = ("numbers", "rule", "ms: median (least - most)", "GB/s", "% of the bandwidth")
            self.session.row("Optimizer steps", head, [f"{elements:,}", first.split(",")[0], "", "", ""])
            for rule in rules:
                self.session.row("Optimizer steps", head, [f"{elements:,}", *re.split(r"\s{2,}", rule.strip())])
        self.optimizer_beside_torch()

    def optimizer_beside_torch(self):
        """The rules that torch.optim has with one kernel for all tensors (adam) and with many (adafactor)."""
        name = "optimizer steps beside torch.optim"
        if not self.session.dry_run and not has_torch():
            self.session.note(name, "not run: this Python has no torch")
            return
        done = self.session.run(name, 90, [
            sys.executable, ROOT / "benchmarks/optimizer_beside_torch.py", "--bench", self.programs.get("optimizer_bench", "optimizer_bench"),
            f"--device={self.options.device}", "--elements", "1000000" if self.options.tiny else "60000000",
            "--rules", "adafactor", "adam", "adamw", "--rounds", "3", "--steps", "5"])
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (done.output.splitlines() if done else [])
                if line.startswith("| ")]
        for cells in rows[1:]:  # as far as it came
            self.session.row("Optimizer steps beside torch.optim", rows[0], cells)

    def operators(self):
        if not self.needs("operators_bench", "operators"):
            return
        done = self.session.run("operators", 60, [self.programs.get("operators_bench", "operators_bench"), f"--device={self.options.device}",
                                                  *(["--tokens=256", "--rounds=1"] if self.options.tiny else [])])
        lines = done.output.splitlines() if done else []
        for line in lines[2:]:  # as far as it came
            cells = re.split(r"\s{2,}", line.strip())
            if len(cells) == 8:
                self.session.row(f"Operators: {lines[0]}", ("operator", "type", "phase", "ms", "GB/s", "% of the bandwidth", "libtorch ms",
                                                            "libtorch / own"), cells)

    def core(self):
        built_here = f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n" in self.cache_text()
        parts = []
        for program in ("core_tests", "reader_tests"):
            if self.needs(program, "tests without libtorch"):
                name = f"tests without libtorch, {program}" + ("" if built_here else " (but those that need the folder of the build)")
                command = [self.programs.get(program, program), "--gtest_brief=1", f"--gtest_filter=*{'' if built_here else f'-{WHERE_BUILT}'}"]
                parts.append(lambda name=name, command=command: self.session.run(name, 120, command))
        return parts

    def cache_text(self):
        cache = self.options.build / "CMakeCache.txt"
        return cache.read_text() if cache.exists() else ""

    def runs(self):
        """Tests that drive the program, with run.device set for every training in them; but those of several processes."""
        program = self.programs["train_on_device"]
        sys.path.insert(0, str(ROOT / "tests/runs"))
        smoke, matrix, heads = (importlib.import_module(f"{name}_test") for name in ("smoke", "matrix", "heads"))
        several = ("all_reduce", "sharded", "shared_batches", "shared_eval", "lora_sharded")  # of two processes
        cells = [f"{row}.{column}" for row, column in matrix.cells_of(matrix.ROWS) if column not in several]
        texts, parts = ([row.name for row in rows] for rows in (matrix.TEXT_ROWS, matrix.TRANSLATION_ROWS))

        def names(rows):
            return [cell for cell in cells if cell.split(".")[0] in rows]

        curves = [f"{name}_follows_its_stored_curve" for name in smoke.RECIPES]
        wanted = [*(("smoke", curves[at::4]) for at in range(4)),
                  *(("matrix", names(parts[at::6])) for at in range(6)),
                  *(("matrix", names([row])) for row in texts),
                  ("heads", [test.__name__ for test in heads.TESTS if "process" not in test.__name__]),
                  ("question_answering", ["a_validation_has_scores_and_marked_answers", "predictions_have_the_scores_that_eval_prints",
                                          "infer_answers_a_file_of_squad_as_eval_does"]),
                  ("embed", ["vectors_depend_on_their_line_alone", "files_of_numpy_hold_the_same"]),
                  ("resume", ["the_same_command_twice_changes_nothing", "a_signal_saves_and_leaves",
                              "saving_in_the_background_changes_nothing_but_the_wait",
                              "broken_checkpoints_are_named_and_the_one_before_is_taken", "killed_at_random_moments"])]
        if pattern := self.options.tests:
            wanted = [(name, [test for test in tests if re.search(pattern, f"{name}.{test}")]) for name, tests in wanted]
            wanted = [(name, tests) for name, tests in wanted if tests]
        for text in TEXTS:
            if not (ROOT / "build" / text).exists() and not self.session.dry_run:  # where the smoke recipes look
                subprocess.run([self.programs[text], ROOT / "build" / text], check=True, stdout=subprocess.DEVNULL)

        def job(number, name, tests):
            return lambda: self.session.run(f"runs.{name}, part {number}", 230, [
                sys.executable, ROOT / f"tests/runs/{name}_test.py", program, *tests])

        return [job(number, *test) for number, test in enumerate(wanted, 1)]


UNTIMED = ("sanitizer", "attention", "resume", "oom", "runs", "core")  # each returns jobs
PARTS = ("kernels", *UNTIMED, "speed", "nccl", "optimizer", "operators", "peers", "understanding", "compiled", "profile", "more")


def parse():
    parser = argparse.ArgumentParser(prog="benchmarks/gpu/run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build/release", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=lambda p: pathlib.Path(p).resolve(), required=True, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=540, help="budget of the whole")
    parser.add_argument("--only", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--tests", help="of the part runs: a regular expression of FILE.TEST, such as 'smoke.*mixed'")
    parser.add_argument("--rounds", type=int, default=2, help="of the parts peers and understanding")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="models of one small layer and few updates: tries the script")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    options.parts = options.only.split(",") if options.only else list(PARTS)
    for part in options.parts:
        if part not in PARTS:
            give_up(f"--only: there is no part {part}", f"parts: {', '.join(PARTS)}")
    return options


def check_programs(options, programs):
    for name in PROGRAMS:
        if name not in programs:
            give_up(f"there is no {options.build / name}", f"cmake --build {options.build} --target {' '.join((*PROGRAMS, *MORE_PROGRAMS))}")
    version = subprocess.run([programs["engine_tests"], "--gtest_list_tests"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if version.returncode != 0:
        give_up("the programs do not start on this machine: " + version.stdout.strip()[-300:],
                "STRETTO_LIBTORCH=/path/to/torch names another libtorch; benchmarks/gpu/pack.sh takes other libraries along")


def main():
    options = parse()
    has_gpu = options.device == "cuda"
    if has_gpu and not options.dry_run and not smi("name"):
        give_up("nvidia-smi lists no GPU", "run this on a machine with one; --dry-run says what would run")
    options.gpu_memory = float(smi("memory.total") or 0) if has_gpu and not options.dry_run else 0
    work = pathlib.Path(tempfile.mkdtemp(prefix="stretto_gpu_"))
    session = Session(options.out, options.seconds, options.dry_run, has_gpu)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.build.is_file():  # what pack.sh made
            with tarfile.open(options.build) as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
                archive.extractall(work / "build")
            options.build = work / "build"
        programs = make_programs(options.build, work, options.device)
        if options.dry_run:
            for name in (*PROGRAMS, *MORE_PROGRAMS):
                programs.setdefault(name, name)
        else:
            check_programs(options, programs)
        everything = Everything(session, programs, work, options)
        session.head = [f"# GPU results, {datetime.date.today()}", "",
                        (smi("name,driver_version,memory.total") if has_gpu else "no GPU: the script was tried") +
                        f"; {os.cpu_count()} cores, {platform.platform()}; parts: {', '.join(options.parts)}"]
        if not options.dry_run:
            session.note("text", make_text(work, programs["phrasebook"]))
        for untimed, parts in itertools.groupby(options.parts, UNTIMED.__contains__):
            jobs = [job for part in parts for job in getattr(everything, part)() or ()]
            if untimed:
                session.together(jobs)
        if options.dry_run:
            print(f"\nat most {session.planned:.0f} s if every step took all its time; the budget is {options.seconds:.0f} s")
    finally:
        session.end_all()
        shutil.rmtree(work, ignore_errors=True)
    if not options.dry_run:
        print((options.out / "summary.md").read_text())
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
