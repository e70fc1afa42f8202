#!/usr/bin/env python3
"""What finetune_beside_trainer.py and inference_beside_transformers.py measure: a BERT of transformers, fine-tuned by its Trainer, and
inference with PyTorch or ONNX Runtime. Runs in a Python with these packages, and prints one JSON object.

    transformers_peer.py train MODEL_DIR --kind class|number|answers --train FILE --valid FILE [--form grouped|equal|compiled|padded] …
    transformers_peer.py infer MODEL_DIR --kind class|number|answers --texts FILE --engine torch|compiled|onnx [--batches 8,32] …

Files are those of understanding.py. Forms of training:

    grouped     as experts run Trainer: group_by_length, each batch padded to its longest, fused AdamW
    equal       for scores: batches as Stretto makes them, each of one length and in random order; and for answers Stretto's loss,
                whose softmax is over [CLS] and the paragraph, where transformers has all rows
    compiled    grouped, with torch_compile
    padded      as transformers' example scripts begin: every text padded to --max-tokens, batches in random order
"""
import argparse
import json
import pathlib
import sys
import random
import time

import numpy
import torch
import transformers
from understanding import questions_of, rows_of

MAX_ANSWER, NBEST, MAX_QUESTION = 30, 20, 64


class TextFeatures:
    """Classification or regression: features of a TSV, and lines of predictions."""

    def __init__(self, options, tokenizer):
        self.options, self.tokenizer = options, tokenizer
        self.labels = []
        if options.kind == "class" and options.train:
            self.labels = sorted({row[-1] for row in rows_of(options.train)})

    def encode(self, path, for_training=False):
        rows = rows_of(path)
        columns = [[row[0] for row in rows]] + ([[row[1] for row in rows]] if len(rows[0]) == 3 else [])
        encoded = self.tokenizer(*columns, truncation="longest_first", max_length=self.options.max_tokens)
        features = [{key: encoded[key][i] for key in encoded} for i in range(len(rows))]
        for feature, row in zip(features, rows):
            if self.options.kind == "number":
                feature["labels"] = float(row[-1])
            elif self.labels:
                feature["labels"] = self.labels.index(row[-1])
        return features

    def write_predictions(self, outputs, features, path, names):
        lines = []
        for row in outputs[0]:
            if self.options.kind == "number":
                lines.append(f"{row[0]:.6f}")
                continue
            chances = numpy.exp(row - row.max())
            chances /= chances.sum()
            lines.append("\t".join([names[int(row.argmax())], *(f"{value:.6f}" for value in chances)]))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class QuestionFeatures:
    """Windows of questions with their paragraphs, and answers chosen from scores of begins and ends."""

    def __init__(self, options, tokenizer):
        self.options, self.tokenizer = options, tokenizer

    def encode(self, path, for_training=False):
        self.asked = questions_of(path)
        # Stretto's stride is the distance between the starts of two windows, the tokenizer's is their overlap.
        texts = [question for _, question, _, _ in self.asked]
        cut = self.tokenizer(texts, truncation=True, max_length=MAX_QUESTION, add_special_tokens=False)["input_ids"]
        texts = [text if len(ids) < MAX_QUESTION else self.tokenizer.decode(ids) for text, ids in zip(texts, cut)]
        features = []
        for begin in range(0, len(texts), 256):
            chosen = slice(begin, begin + 256)
            encoded = self.tokenizer(texts[chosen], [context for _, _, context, _ in self.asked[chosen]], truncation="only_second",
                                     max_length=self.options.max_tokens, stride=self.options.overlap, return_overflowing_tokens=True,
                                     return_offsets_mapping=True)
            for i, question in enumerate(encoded["overflow_to_sample_mapping"]):
                feature = {key: encoded[key][i] for key in ("input_ids", "token_type_ids", "attention_mask")}
                where = encoded.sequence_ids(i)
                places = [place if part == 1 else None for place, part in zip(encoded["offset_mapping"][i], where)]
                if for_training:
                    feature["start_positions"], feature["end_positions"] = self.answer_rows(begin + question, places)
                features.append({**feature, "question": begin + question, "places": places})
        return features

    def answer_rows(self, question, places):
        """First and last token of the first answer; [CLS] where the window does not hold all of it."""
        answer = self.asked[question][3][0]
        begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        inside = [i for i, place in enumerate(places) if place and place[1] > begin and place[0] < end]
        if not inside or places[inside[0]][0] > begin or places[inside[-1]][1] < end:
            return 0, 0
        return inside[0], inside[-1]

    def write_predictions(self, outputs, features, path, names):
        best = {}
        for number, feature in enumerate(features):
            start, end = (part[number][:len(feature["places"])] for part in outputs)
            begins, ends = (numpy.argsort(scores)[::-1][:NBEST] for scores in (start, end))
            for i in begins:
                for j in ends:
                    if feature["places"][i] and feature["places"][j] and i <= j < i + MAX_ANSWER:
                        score = float(start[i] + end[j])
                        if score > best.get(feature["question"], (-1e30,))[0]:
                            best[feature["question"]] = (score, feature["places"][i][0], feature["places"][j][1])
        answers = {name: "" for name, *_ in self.asked}
        for question, (_, begin, end) in best.items():
            name, _, context, _ = self.asked[question]
            answers[name] = context[begin:end]
        path.write_text(json.dumps(answers, ensure_ascii=False), encoding="utf-8")


def features_of(options, tokenizer):
    return (QuestionFeatures if options.kind == "answers" else TextFeatures)(options, tokenizer)


def only_inputs(features):
    return [{key: value for key, value in feature.items() if key not in ("question", "places")} for feature in features]


def model_class(kind):
    return transformers.AutoModelForQuestionAnswering if kind == "answers" else transformers.AutoModelForSequenceClassification


class CountingTrainer(transformers.Trainer):
    """Trainer that knows real tokens and samples of each update, and when it ended."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.updates = []

    def training_step(self, model, inputs, *more, **named):
        tokens, samples = int(inputs["attention_mask"].sum()), int(inputs["attention_mask"].shape[0])
        loss = super().training_step(model, inputs, *more, **named)
        self.updates.append([time.perf_counter(), tokens, samples])
        return loss


class BatchesOfOneLength(torch.utils.data.BatchSampler):
    """Samples sorted by length, equal lengths in random order, cut into batches, which come in random order."""

    def __init__(self, lengths, batch, seed):
        super().__init__(range(len(lengths)), batch, drop_last=False)
        self.lengths, self.random = lengths, random.Random(seed)

    def __iter__(self):
        order = sorted(self.sampler, key=lambda i: (self.lengths[i], self.random.random()))
        batches = [order[begin:begin + self.batch_size] for begin in range(0, len(order), self.batch_size)]
        self.random.shuffle(batches)
        return iter(batches)


class EqualTrainer(CountingTrainer):
    """What the form `equal` changes."""

    def get_train_dataloader(self):
        lengths = [len(sample["input_ids"]) for sample in self.train_dataset]
        batches = BatchesOfOneLength(lengths, self.args.per_device_train_batch_size, self.args.seed)
        return self.accelerator.prepare(
            torch.utils.data.DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if "start_positions" not in inputs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        inputs = dict(inputs)
        places = inputs.pop("start_positions"), inputs.pop("end_positions")
        found = model(**inputs)
        allowed = inputs["token_type_ids"].bool()  # the paragraph, and the [SEP] behind it
        allowed[torch.arange(len(allowed)), inputs["attention_mask"].sum(1) - 1] = False
        allowed[:, 0] = True
        loss = sum(torch.nn.functional.cross_entropy(scores.masked_fill(~allowed, -torch.inf), rows)
                   for scores, rows in zip((found.start_logits, found.end_logits), places)) / 2
        return (loss, found) if return_outputs else loss


def rate(updates, warm):
    """The rate after `warm` updates. Times are those of the end of backward: each window holds as many optimizer steps."""
    if len(updates) <= warm or warm < 1:
        sys.exit(f"error: {len(updates)} updates, no more than the {warm} before the window")
    window, seconds = updates[warm:], updates[-1][0] - updates[warm - 1][0]
    tokens, samples = (sum(update[column] for update in window) for column in (1, 2))
    mean = sum(update[1] for update in updates) / sum(update[2] for update in updates)
    return {"tokens_per_second": tokens / seconds, "samples_per_second": samples / seconds, "mean_tokens": mean, "updates": len(updates)}


def train(options):
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    maker = features_of(options, tokenizer)
    training = only_inputs(maker.encode(options.train, for_training=True))
    transformers.set_seed(options.seed)
    more = {}
    if options.kind == "class":
        more["num_labels"] = len(maker.labels)
    elif options.kind == "number":
        more.update(num_labels=1, problem_type="regression")
    model = model_class(options.kind).from_pretrained(options.model, **more)
    padded = options.form == "padded"
    settings = transformers.TrainingArguments(
        output_dir=str(options.output), seed=options.seed, learning_rate=options.lr, lr_scheduler_type="linear", warmup_ratio=0.1,
        num_train_epochs=options.epochs, max_steps=options.updates or -1, per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=64, weight_decay=0.01, adam_beta1=0.9, adam_beta2=0.999, adam_epsilon=1e-8, max_grad_norm=1.0,
        group_by_length=options.form in ("grouped", "compiled"),
        **({} if padded else {"optim": "adamw_torch_fused"}), bf16=options.bf16, use_cpu=True,
        torch_compile=options.form == "compiled", save_strategy="no", eval_strategy="no", logging_strategy="no", report_to="none",
        disable_tqdm=True)
    collator = transformers.DataCollatorWithPadding(tokenizer, padding="max_length" if padded else True, max_length=options.max_tokens)
    trainer = (EqualTrainer if options.form == "equal" else CountingTrainer)(model=model, args=settings, train_dataset=training, data_collator=collator, processing_class=tokenizer)
    begin = time.perf_counter()
    trainer.train()
    found = {"train_seconds": time.perf_counter() - begin, "features": len(training)}
    trainer.save_model(str(options.output))
    if options.warm:
        found.update(rate(trainer.updates, options.warm))
    if options.predictions:
        valid = maker.encode(options.valid)
        inputs = [{key: value for key, value in feature.items() if key != "labels"} for feature in only_inputs(valid)]
        trainer.args.group_by_length = False  # predict() would answer in the order of the lengths
        outputs = trainer.predict(inputs).predictions
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        maker.write_predictions(outputs[:2], valid, options.predictions, getattr(maker, "labels", []))
    return found


def export_onnx(options, tokenizer, path):
    """Writes the model for ONNX Runtime, fused by its tool for BERT where that is there."""
    import onnxruntime
    # PyTorch's exporter knows the eager form best.
    model = model_class(options.kind).from_pretrained(options.model, attn_implementation="eager").eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tokenizer(["one text", "another text"], ["and its pair", "and its own"], padding=True, return_tensors="pt")
    outputs = ["start_logits", "end_logits"] if options.kind == "answers" else ["logits"]
    axes = {name: {0: "batch", 1: "length"} for name in names}
    axes.update({name: {0: "batch", **({1: "length"} if options.kind == "answers" else {})} for name in outputs})
    model.config.return_dict = False
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_name("plain.onnx")
    with torch.inference_mode():
        torch.onnx.export(model, tuple(example[name] for name in names), str(plain), input_names=names, output_names=outputs,
                          dynamic_axes=axes, opset_version=17, dynamo=False)
    try:
        from onnxruntime.transformers import optimizer
        better = optimizer.optimize_model(str(plain), model_type="bert", num_heads=model.config.num_attention_heads,
                                          hidden_size=model.config.hidden_size)
        better.save_model_to_file(str(path))
    except Exception as failure:  # the tool is an extra
        print(f"the tool of onnxruntime {onnxruntime.__version__} was left out: {failure}", file=sys.stderr)
        plain.replace(path)


def onnx_engine(options, tokenizer):
    """A function from inputs to arrays of outputs, by ONNX Runtime. A model that was exported by a call before is taken as it is."""
    path = options.output / "model.onnx"
    if not path.exists():
        export_onnx(options, tokenizer, path)
    return onnx_session(path, options.threads)


def onnx_session(path, threads):
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, {name: inputs[name].numpy() for name in ("input_ids", "attention_mask", "token_type_ids")})


def torch_engine(options):
    model = model_class(options.kind).from_pretrained(options.model).eval()
    return torch_runner(options, torch.compile(model, dynamic=True) if options.engine == "compiled" else model)


def torch_runner(options, model):
    """A function from inputs to arrays of outputs."""
    def run(inputs):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            found = model(**inputs)
        parts = (found.start_logits, found.end_logits) if options.kind == "answers" else (found.logits,)
        return [part.float().numpy() for part in parts]
    return run


def infer(options):
    torch.set_num_threads(options.threads)
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    engine = onnx_engine(options, tokenizer) if options.engine == "onnx" else torch_engine(options)
    return timed_answers(options, tokenizer, engine)


def timed_answers(options, tokenizer, engine):
    """Sorted by length, batches padded to their longest; the batch size is the fastest of --batches on a first part."""
    maker = features_of(options, tokenizer)
    labels = transformers.AutoConfig.from_pretrained(options.model).id2label
    names = [labels[i] for i in range(len(labels))]

    def run(features, batch):
        order = sorted(range(len(features)), key=lambda i: -len(features[i]["input_ids"]))
        found = [None] * len(features)
        for begin in range(0, len(order), batch):
            chosen = order[begin:begin + batch]
            inputs = tokenizer.pad([{key: features[i][key] for key in ("input_ids", "attention_mask", "token_type_ids")} for i in chosen],
                                   return_tensors="pt")
            parts = engine(inputs)
            for place, i in enumerate(chosen):
                found[i] = [part[place] for part in parts]
        return [[row[part] for row in found] for part in range(len(found[0]))]

    trial, most = maker.encode(options.texts), 512 if len(options.batches) > 1 else 64  # one batch size has but to be warm
    trial = trial[::max(1, len(trial) // most)][:most]
    speeds = {}
    for batch in options.batches:
        run(trial, batch)  # compiles, and fills caches
        begin = time.perf_counter()
        run(trial, batch)
        speeds[batch] = time.perf_counter() - begin
    best = min(speeds, key=speeds.get)
    begin = time.perf_counter()
    features = maker.encode(options.texts)
    maker.write_predictions(run(features, best), features, options.predictions, names)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "batch": best, "features": len(features), "tokens": sum(len(f["input_ids"]) for f in features)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("train", "infer"))
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--kind", choices=("class", "number", "answers"), required=True)
    parser.add_argument("--train", type=pathlib.Path)
    parser.add_argument("--valid", type=pathlib.Path)
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--form", choices=("grouped", "equal", "compiled", "padded"), default="grouped")
    parser.add_argument("--engine", choices=("torch", "compiled", "onnx"), default="torch")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for the model")
    parser.add_argument("--predictions", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--updates", type=int, default=0, help="instead of epochs")
    parser.add_argument("--warm", type=int, default=0, help="updates before the window in which speed is measured; 0: it is not")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=lambda text: [int(word) for word in text.split(",")], default=[8, 16, 32, 64])
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--overlap", type=int, default=128, help="tokens that two windows of a paragraph share")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    print(json.dumps({"train": train, "infer": infer}[options.command](options)))


if __name__ == "__main__":
    main()
