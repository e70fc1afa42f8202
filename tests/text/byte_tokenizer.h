#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/sequence_template.h"
#include "text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::text::test {

/// Each byte is a token; with a template of its own.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(int64_t eos) : eos_(eos) {}
  SpecialIds specials() const override { return {.pad = 0, .bos = 1, .eos = eos_}; }
  SequenceTemplate sequences() const override {
    return {.single = {{.part = SequenceTemplate::Part::kSpecial, .id = 1}, {}}, .pair = {}};
  }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    for (const char c : line) ids.push_back(c);
  }
  std::string decode(const std::vector<int64_t>&) const override { return "decoded"; }
  std::string piece(int64_t) const override { return "piece"; }
  int64_t size() const override { return 256; }
  uint64_t fingerprint() const override { return 7; }

 private:
  int64_t eos_;
};

}  // namespace stretto::text::test
