#pragma once

#include <cstddef>
#include <cstdint>

#include "text/tokenizer_spec.h"

namespace stretto::testing {

/// A tokenizer of Llama's kind: BPE of characters, and bytes for what has no piece. The ids:
///
///     0 <unk>  1 <s>  2 </s>  3 <0xC3>  4 <0xA9>  5 ▁  6 a  7 b  8 ab  9 ▁ab  10 c  11 d
inline text::TokenizerSpec llama_spec(
    text::TokenizerSpec::SpacePrefix prefix = text::TokenizerSpec::SpacePrefix::kDoubled) {
  text::TokenizerSpec spec;
  spec.model = text::TokenizerSpec::Model::kCharacterBpe;
  spec.decoder = text::TokenizerSpec::Decoder::kMarks;
  spec.space_prefix = prefix;
  spec.byte_fallback = spec.fuse_unk = true;
  spec.unk_token = "<unk>";
  int64_t next = 0;
  for (const char* piece :
       {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁ab", "c", "d"}) {
    spec.vocab.emplace_back(piece, next++);
  }
  spec.merges = {{"a", "b"}, {"▁", "ab"}};
  for (int64_t id = 0; id < 3; ++id) {
    spec.added.push_back({.content = spec.vocab[static_cast<size_t>(id)].first,
                          .id = id,
                          .normalized = false,
                          .special = true});
  }
  return spec;
}

}  // namespace stretto::testing
