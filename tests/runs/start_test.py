#!/usr/bin/env python3
"""What training says where it starts, on the screen and in log.txt, and that it says it once.

    tests/runs/start_test.py build/release/stretto [TEST...]
"""
from changed_data_test import KEYS, LONGER, lab_with
from harness import Lab, check, main

SLOW = "rounds to it and multiplies in fp32: not faster than fp32"
TF32 = "tf32 is arithmetic of GPUs; on a CPU it is fp32"


def lines_of(lab, precision):
    """log.txt of a run of one update; the screen must show the same remark."""
    run = precision
    result = lab.train(run, f"train.precision={precision}", "train.max_steps=1", "schedule.warmup_steps=0")
    check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
    return (lab.root / run / "log.txt").read_text().splitlines(), result.stderr


def says(lab, precision, sentence, times=1):
    lines, screen = lines_of(lab, precision)
    count = sum(sentence in line for line in lines)
    check(count == times, f"{precision}: `{sentence}` stands in {count} lines of log.txt, {times} expected:\n"
          + "\n".join(lines))
    check(screen.count(sentence) == times, f"{precision}: the screen shows `{sentence}` {screen.count(sentence)} times")


def half_precision_that_saves_no_time_is_remarked_on(stretto):
    with Lab(stretto) as lab:
        says(lab, "mixed_fp16", "products in fp16, all else in fp32; this processor " + SLOW)
        # bf16 is fast where auto chooses it.
        chosen = "\n".join(lines_of(lab, "auto")[0])
        says(lab, "mixed_bf16", SLOW, times=0 if ", mixed_bf16" in chosen else 1)


def what_auto_chose_and_what_tf32_is_are_said(stretto):
    with Lab(stretto) as lab:
        says(lab, "auto", "auto: ")
        says(lab, "auto_fp16", "auto_fp16: fp16 is for GPUs; auto: ")
        says(lab, "tf32", TF32)


def what_was_asked_for_in_so_many_words_is_not_explained(stretto):
    with Lab(stretto) as lab:
        for sentence in ("as train.precision says", SLOW):
            says(lab, "fp32", sentence, times=0)


def json_lines_are_refused_where_a_run_of_masked_tokens_begins_and_not_where_it_goes_on(stretto):
    """Earlier versions began such runs, and read what stands in the file."""
    with lab_with(stretto, "masked_lm") as lab:
        (lab.root / "train.txt").rename(lab.root / "train.jsonl")
        lab.config.write_text(lab.config.read_text().replace("train.txt", "train.jsonl"))
        result = lab.train("run", *KEYS)
        check(result.returncode == 2 and "train.jsonl is called like JSON lines" in result.stderr, f"{result.returncode}: {result.stderr}")
        # A folder with an update in it has been begun already.
        (lab.root / "run").mkdir(exist_ok=True)
        (lab.root / "run/metrics.jsonl").write_text('{"event": "train", "step": 1}\n')
        for keys in (KEYS, LONGER):
            result = lab.train("run", *keys)
            check(result.returncode == 0 and "called like JSON lines" not in result.stderr, f"{result.returncode}: {result.stderr}")
        check("resuming from the checkpoint of step 4" in result.stderr, result.stderr)


if __name__ == "__main__":
    main({test.__name__: test for test in (half_precision_that_saves_no_time_is_remarked_on,
                                           what_auto_chose_and_what_tf32_is_are_said,
                                           what_was_asked_for_in_so_many_words_is_not_explained,
                                           json_lines_are_refused_where_a_run_of_masked_tokens_begins_and_not_where_it_goes_on)})
