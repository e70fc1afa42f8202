#include "text/behind_separator.h"

#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace stretto::text {
namespace {

using Part = SequenceTemplate::Part;

class BehindSeparator final : public Tokenizer {
 public:
  explicit BehindSeparator(std::shared_ptr<const Tokenizer> inner) : inner_(std::move(inner)) {}

  SequenceTemplate sequences() const override {
    const int64_t id = inner_->specials().eos;
    return {.single = {{.part = Part::kSpecial, .id = id}, {}},
            .pair = {{.part = Part::kSpecial, .id = id},
                     {},
                     {.part = Part::kSpecial, .id = id, .segment = 1},
                     {.part = Part::kSecond, .segment = 1}}};
  }
  uint64_t fingerprint() const override {
    constexpr uint64_t kSeparated = 0x7365706172617465;  // "separate"
    return mix64(inner_->fingerprint(), kSeparated);
  }

  SpecialIds specials() const override { return inner_->specials(); }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    inner_->encode(line, ids);
  }
  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    inner_->encode_with_spans(line, ids, spans);
  }
  bool fills_places() const override { return inner_->fills_places(); }
  std::string decode(const std::vector<int64_t>& ids) const override { return inner_->decode(ids); }
  Subwords subwords() const override { return inner_->subwords(); }
  std::string piece(int64_t id) const override { return inner_->piece(id); }
  SubwordModel subword_model() const override { return inner_->subword_model(); }
  int64_t size() const override { return inner_->size(); }
  bool continues_word(int64_t id) const override { return inner_->continues_word(id); }

 private:
  std::shared_ptr<const Tokenizer> inner_;
};

}  // namespace

std::shared_ptr<const Tokenizer> behind_separator(std::shared_ptr<const Tokenizer> tokenizer) {
  if (tokenizer->specials().eos < 0) {
    throw Error(ExitCode::kUsage,
                "the tokenizer has no separator, behind which a language model reads a text",
                "use a tokenizer that has one");
  }
  return std::make_shared<BehindSeparator>(std::move(tokenizer));
}

}  // namespace stretto::text
