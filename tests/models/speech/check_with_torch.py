#!/usr/bin/env python3
"""Compares models of speech with the same networks in PyTorch (benchmarks/torch_speech_models.py): CTC scores, losses and gradients.

    check_with_torch.py SPEECH_TOOL

Stretto computes a packed batch in fp32, PyTorch one utterance after the other in fp64, and then all of them padded. Scores and losses must
agree to 1e-4 of the largest number, gradients to 1e-3.
Exits 0 when all agree, 1 with the first difference, 77 (skipped) when a package is not installed.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file
except ImportError:
    print("torch or safetensors is not installed: skipped")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "benchmarks"))
import torch_speech_models as peers  # noqa: E402

FEATURES, LABELS = 12, 5
DECODER = {"num_layers": 2, "units": 7, "embedding": 4, "width": 5, "filters": 3, "kernel": 5}
CONFORMER = {"num_layers": 2, "width": 8, "heads": 2, "inner": 12, "kernel": 5}
PLANES = [(3, (5, 7), (2, 2)), (2, (3, 5), (1, 2))]


def blocks(form="none", separable=False):
    """As speech_tool has them."""
    made = [{"channels": 8, "kernel": 5, "stride": 2}, {"channels": 6, "kernel": 3, "repeat": 2, "residual": form},
            {"channels": 7, "kernel": 5, "repeat": 2, "residual": form}, {"channels": 9, "kernel": 3, "dilation": 2},
            {"channels": 8, "kernel": 1}]
    for block in made[:4]:
        block["separable"] = separable
    return made


def encoders():
    """(encoder, decoder or None) by the names of the tool's files."""
    return {
        "wave2letter": (peers.TimeDelay(FEATURES, blocks(), clips=True), None),
        "jasper": (peers.TimeDelay(FEATURES, blocks("dense")), None),
        "quartznet": (peers.TimeDelay(FEATURES, blocks("block", True)), None),
        "deepspeech2": (peers.DeepSpeech2(FEATURES, PLANES, "gru", 2, 6, True, 1, 9), None),
        "deepspeech2_forward": (peers.DeepSpeech2(FEATURES, PLANES, "lstm", 2, 6, False, 3, 9), None),
        "conformer": (peers.Conformer(FEATURES, **CONFORMER), None),
        "conformer_rotary": (peers.Conformer(FEATURES, **CONFORMER, relative=False, planes=False, batch_norm=False), None),
        "conformer_joint": (peers.Conformer(FEATURES, **CONFORMER), {**DECODER, "coverage": False}),
        "las": (peers.TimeDelay(FEATURES, blocks(), clips=True), DECODER),
    }


def cut(values, offsets):
    return [values[begin:end] for begin, end in zip(offsets.tolist(), offsets[1:].tolist())]


def compare(what, got, wanted, tolerance):
    if got.shape != wanted.shape:
        sys.exit(f"{what}: shapes {tuple(got.shape)} and {tuple(wanted.shape)}")
    difference = (got.double() - wanted).abs().max().item() if got.numel() else 0.0
    largest = max(1.0, wanted.abs().max().item() if wanted.numel() else 0.0)
    if not difference <= tolerance * largest:
        sys.exit(f"{what}: differs by {difference:.2e}")
    return difference / largest


def one_by_one(model, frames, labels):
    """Scores of all utterances, and their losses."""
    scores, ctc, attention = [], [], []
    for one, wanted in zip(frames, labels):
        lengths = torch.tensor([len(one)])
        found, _, rows = model.scores(one.unsqueeze(0), lengths)
        scores.append(found[0, :int(rows)])
        losses = model.losses(one.unsqueeze(0), lengths, [wanted])
        ctc.append(losses[0])
        attention.append(losses[1] if losses[1] is not None else torch.zeros(1))
    return torch.cat(scores), torch.cat(ctc), torch.cat(attention)


def padded_scores(model, frames):
    lengths = torch.tensor([len(one) for one in frames])
    found, _, rows = model.scores(torch.nn.utils.rnn.pad_sequence(frames, batch_first=True), lengths)
    return torch.cat([one[:int(count)] for one, count in zip(found, rows)])


def check(name, model, tensors):
    frames = cut(tensors["frames"].double(), tensors["frame_offsets"])
    labels = cut(tensors["labels"], tensors["label_offsets"])
    peers.load(model, {key.removeprefix("model."): value.double() for key, value in tensors.items() if key.startswith("model.")})
    scores, ctc, attention = one_by_one(model, frames, labels)
    possible = (ctc > 0).double()  # an impossible pair has the loss 0
    worst = [compare(f"{name}: scores", tensors["scores"], scores, 1e-4),
             compare(f"{name}: scores of a padded batch", tensors["scores"], padded_scores(model, frames), 1e-4),
             compare(f"{name}: CTC", tensors["ctc"], ctc, 1e-4)]
    total = ctc
    if "attention" in tensors:
        worst.append(compare(f"{name}: attention", tensors["attention"], attention * possible, 1e-4))
        total = (1 - model.weight) * ctc + model.weight * attention * possible
    total.sum().backward()
    for own, parameter in peers.matrices(model):
        if isinstance(parameter, torch.nn.Parameter) and f"gradient.{own}" in tensors:
            gradient = peers.shaped(tensors[f"gradient.{own}"], parameter)
            worst.append(compare(f"{name}: gradient of {own}", gradient, parameter.grad, 1e-3))
        elif isinstance(parameter, torch.nn.Parameter) and not own.endswith("hidden.bias"):
            sys.exit(f"{name}: {own} has no gradient")
    print(f"{name}: {max(worst):.1e}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_with_torch.py SPEECH_TOOL")
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        made = encoders()
        files = {path.stem: path for path in pathlib.Path(folder).glob("*.safetensors")}
        if set(files) != set(made):
            sys.exit(f"the tool has {sorted(files)}, this program {sorted(made)}")
        for name, (encoder, decoder) in made.items():
            model = peers.SpeechModel(encoder, LABELS, decoder).double().eval()
            check(name, model, load_file(files[name]))


if __name__ == "__main__":
    main()
