#!/usr/bin/env python3
"""The other programs of encoders_packed_beside.py: a fine-tuned BERT in fp32, int8 and int4 by PyTorch, torchao and ONNX Runtime.

    encoders_packed_peer.py versions
    encoders_packed_peer.py prepare MODEL_DIR --kind class|number|answers --output DIR [--engine onnx_int8 …]
    encoders_packed_peer.py infer MODEL_DIR --kind … --output DIR --texts FILE --engine ENGINE --predictions FILE [--batches 32] …

`versions` prints the packages that are there. `prepare` writes what ONNX Runtime opens, so that no measured process exports. `infer` is
that of transformers_peer.py with more engines, and says the bytes of the model file too. Engines:

    torch, compiled       transformers; and with torch.compile
    onnx                  ONNX Runtime, fused by its tool for BERT
    onnx_int8             the same, quantize_dynamic: a scale for each column of a matrix, of token tables one
    onnx_int4             MatMulNBits: blocks of 32 weights share a scale, and rows are rounded to 8 bits; not fused
    dynamic_int8          torch.ao.quantization.quantize_dynamic
    torchao_int8          Int8DynamicActivationInt8WeightConfig; torchao_int8_compiled: with torch.compile
    torchao_int4          weights alone in the layout for CPUs, groups of 32; torchao_int4_compiled: with torch.compile
    torchao_int4_dynamic_compiled   Int8DynamicActivationInt4WeightConfig, groups of 32, with torch.compile

PyTorch's and torchao's forms pack linear maps alone; token tables stay fp32.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile

PACKAGES = ("torch", "transformers", "onnxruntime", "onnx", "onnx-ir", "torchao")
GROUP = 32


def versions():
    """Version of each package, None where it is missing."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def has_vnni():
    """Whether the processor sums products of bytes in 32 bits. Without it ONNX Runtime adds pairs in 16 bits, which overflow."""
    try:
        flags = next(line for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return any("vnni" in flag for flag in flags.split())


def quantise_onnx(options, engine, tokenizer):
    """The file of onnx, onnx_int8 or onnx_int4 in options.output; made if it is not there."""
    import transformers_peer
    fused, wanted = options.output / "model.onnx", options.output / {"onnx": "model.onnx"}.get(engine, f"{engine}.onnx")
    if wanted.exists():
        return wanted
    if not fused.exists():
        transformers_peer.export_onnx(options, tokenizer, fused)
    written = wanted.with_name(f".{wanted.name}")
    if engine == "onnx_int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(str(fused), str(written), per_channel=True, weight_type=QuantType.QInt8, reduce_range=not has_vnni(),
                         extra_options={"DefaultTensorType": 1})
        os.replace(written, wanted)
    elif engine == "onnx_int4":
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        # The fused form has the first matrices of attention in an operator of its own.
        plain = fused.with_name("plain.onnx")
        made = MatMulNBitsQuantizer(onnx.load(str(plain if plain.exists() else fused)), block_size=GROUP, is_symmetric=True, accuracy_level=4)
        made.process()
        made.model.save_model_to_file(str(written))
        os.replace(written, wanted)
    return wanted


def onnx_bytes(path):
    """Of a model, with the file of large weights if it has one."""
    beside = path.with_name(path.name + ".data")
    return path.stat().st_size + (beside.stat().st_size if beside.exists() else 0)


def is_packed(module, name):
    """Linear maps whose sizes fit groups: not the few columns of a head."""
    import torch
    return isinstance(module, torch.nn.Linear) and module.in_features % GROUP == 0 and module.out_features % GROUP == 0


def quantise_torch(model, engine):
    import torch
    if engine == "dynamic_int8":
        # AMD's processors too: the other engine is for ARM.
        torch.backends.quantized.engine = "x86" if "x86" in torch.backends.quantized.supported_engines else "fbgemm"
        return torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    from torchao.quantization import quantize_
    quantize_(model, torchao_config(engine), is_packed)
    return model


def torchao_config(engine):
    from torchao import quantization
    if engine.startswith("torchao_int8"):
        return quantization.Int8DynamicActivationInt8WeightConfig()
    try:
        from torchao.prototype.quantization import int4
    except ImportError:  # before 0.18 the layout for CPUs was one of several
        if engine.startswith("torchao_int4_dynamic"):
            raise
        return quantization.Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format="opaque")
    if engine.startswith("torchao_int4_dynamic"):
        return int4.Int8DynamicActivationInt4WeightConfig(group_size=GROUP)
    return int4.PrototypeInt4WeightOnlyConfig(group_size=GROUP)


def saved_bytes(model):
    """Of a file of the model's state."""
    import torch
    with tempfile.TemporaryFile() as file:
        torch.save(model.state_dict(), file)
        return file.tell()


def engine_of(options, tokenizer):
    """A function from inputs to arrays of outputs, and the bytes of the model file."""
    import torch
    import transformers_peer
    if options.engine.startswith("onnx"):
        path = quantise_onnx(options, options.engine, tokenizer)
        return transformers_peer.onnx_session(path, options.threads), onnx_bytes(path)
    torch.set_grad_enabled(False)
    model = transformers_peer.model_class(options.kind).from_pretrained(options.model).eval()
    if options.engine in ("torch", "compiled"):
        size = sum(path.stat().st_size for path in options.model.glob("*.safetensors"))
    else:
        model = quantise_torch(model, options.engine)
        size = saved_bytes(model)
    if "compiled" in options.engine:
        torch._inductor.config.freezing = True  # weights are constants: packed once
        model = torch.compile(model, dynamic=True)
    return transformers_peer.torch_runner(options, model), size


def infer(options):
    import torch
    import transformers
    import transformers_peer
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    if options.command == "prepare":
        return {"files": [quantise_onnx(options, engine, tokenizer).name for engine in options.engine]}
    options.engine = options.engine[0]
    engine, size = engine_of(options, tokenizer)
    return {**transformers_peer.timed_answers(options, tokenizer, engine), "model_bytes": size, "versions": versions()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("versions", "prepare", "infer"))
    parser.add_argument("model", type=pathlib.Path, nargs="?")
    parser.add_argument("--kind", choices=("class", "number", "answers"))
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--engine", nargs="+", default=["torch"])
    parser.add_argument("--output", type=pathlib.Path, help="folder of the files of ONNX Runtime")
    parser.add_argument("--predictions", type=pathlib.Path)
    parser.add_argument("--batches", type=lambda text: [int(word) for word in text.split(",")], default=[8, 16, 32, 64])
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--overlap", type=int, default=128, help="tokens that two windows of a paragraph share")
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(train=None, bf16=False)
    return parser.parse_args()


def main():
    options = parse()
    print(json.dumps(versions() if options.command == "versions" else infer(options)))


if __name__ == "__main__":
    sys.exit(main())
