"""Model folders whose files are small and ask for much memory."""
import json
import struct
import zipfile

PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n"


def bert_config(**changes):
    return {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 4, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16, "type_vocab_size": 2,
            "vocab_size": 8, "pad_token_id": 0, **changes}


def safetensors(shapes):
    """The bytes of a file with zeros of these shapes, by name."""
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4
        for n in shape:
            size *= n
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def write_folder(folder, config=None, pieces=PIECES, weights=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or bert_config()))
    (folder / "vocab.txt").write_text(pieces)
    if weights is None:
        weights = safetensors({"embeddings.word_embeddings.weight": [8, 4]})
    (folder / "model.safetensors").write_bytes(weights)


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def storage_asked_for_often(path, key_bytes=1 << 20, times=100_000):
    """A file of torch.save whose pickle makes a storage with a long key, over and over."""
    reference = (b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"k" * key_bytes) + text(b"cpu") + b"K\x01t"
                 + b"q\x00")
    pickle = b"\x80\x02](" + reference + b"Q" + b"h\x00Q" * times + b"e."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("m/data.pkl", pickle)
        archive.writestr("m/data/0", bytes(4))


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


def message(number, content):
    """A field of a protobuf message with bytes."""
    return varint(number * 8 + 2) + varint(len(content)) + content


def sentencepiece(pieces):
    """A SentencePiece model of BPE with these pieces behind Llama's special ones."""
    def piece(name, kind):
        return message(1, message(1, name.encode()) + b"\x15" + struct.pack("<f", 0.0) + b"\x18" + bytes([kind]))

    specials = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3)
    trainer = b"\x18\x02"  # model_type: BPE
    return specials + b"".join(piece(name, 1) for name in pieces) + message(2, trainer)
