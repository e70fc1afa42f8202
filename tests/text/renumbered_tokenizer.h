#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::testing {

/// Another tokenizer with its ids in reverse order: specials come last, and the ids that they have
/// elsewhere are words. For tests that nobody takes them from anywhere but specials().
class RenumberedTokenizer final : public text::Tokenizer {
 public:
  explicit RenumberedTokenizer(std::shared_ptr<const text::Tokenizer> inner)
      : inner_(std::move(inner)) {}

  /// Its own inverse; -1 stays.
  int64_t number(int64_t id) const { return id < 0 ? id : inner_->size() - 1 - id; }
  std::vector<int64_t> numbers(std::vector<int64_t> ids) const {
    for (int64_t& id : ids) id = number(id);
    return ids;
  }

  text::SpecialIds specials() const override {
    const text::SpecialIds own = inner_->specials();
    return {.pad = number(own.pad),
            .unk = number(own.unk),
            .bos = number(own.bos),
            .eos = number(own.eos)};
  }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    std::vector<int64_t> own;
    inner_->encode(line, own);
    for (const int64_t id : own) ids.push_back(number(id));
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    return inner_->decode(numbers(ids));
  }
  text::Subwords subwords() const override { return inner_->subwords(); }
  std::string piece(int64_t id) const override { return inner_->piece(number(id)); }
  int64_t size() const override { return inner_->size(); }
  uint64_t fingerprint() const override { return ~inner_->fingerprint(); }

 private:
  std::shared_ptr<const text::Tokenizer> inner_;
};

}  // namespace stretto::testing
