#pragma once

#include <memory>
#include <string>

#include "text/byte_bpe.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::testing {

/// A byte-level tokenizer: 0 to 255 are the bytes, then th (256), Ġth (257), ĊĊ (258), and the
/// separator <|endoftext|> (259).
inline std::shared_ptr<const text::Tokenizer> byte_tokenizer() {
  text::TokenizerSpec spec;
  spec.model = text::TokenizerSpec::Model::kByteBpe;
  spec.decoder = text::TokenizerSpec::Decoder::kBytes;
  for (const std::string& byte : text::byte_alphabet()) {
    spec.vocab.emplace_back(byte, static_cast<int64_t>(spec.vocab.size()));
  }
  spec.vocab.insert(spec.vocab.end(),
                    {{"th", 256}, {"Ġth", 257}, {"ĊĊ", 258}, {"<|endoftext|>", 259}});
  spec.merges = {{"t", "h"}, {"Ġ", "th"}, {"Ċ", "Ċ"}};
  return text::make_spec_tokenizer(spec, "bytes", 23);
}

}  // namespace stretto::testing
