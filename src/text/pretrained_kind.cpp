#include "text/pretrained_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace stretto::text {
namespace {

using Slots = std::vector<SequenceTemplate::Slot>;
using Part = SequenceTemplate::Part;

constexpr std::array<std::string_view, 5> kBertSpecials{"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                        "[MASK]"};
constexpr std::array<std::string_view, 5> kRobertaSpecials{"<s>", "<pad>", "</s>", "<unk>",
                                                           "<mask>"};

constexpr std::array<std::string_view, 1> kGpt2Specials{"<|endoftext|>"};

/// A word of a template, without its segment.
struct TemplateWord {
  std::string token;
  int64_t segment = 0;

  bool is_text() const { return token == "$A" || token == "$B"; }
};

std::vector<TemplateWord> words_of(std::string_view sequence) {
  std::vector<TemplateWord> words;
  if (sequence.empty()) return words;
  for (auto& word : split(sequence, ' ')) {
    TemplateWord found{.token = std::move(word)};
    const size_t colon = found.token.rfind(':');
    if (colon != std::string::npos) {
      const std::string& text = found.token;
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), found.segment);
      found.token.resize(colon);
    }
    words.push_back(std::move(found));
  }
  return words;
}

int64_t id_of_special(const TokenizerSpec& spec, std::string_view content) {
  const auto found =
      std::find_if(spec.added.begin(), spec.added.end(),
                   [&](const AddedToken& token) { return token.content == content; });
  return found == spec.added.end() ? -1 : found->id;
}

/// Nothing where one of the tokens is not there.
std::optional<Slots> slots_of(const TokenizerSpec& spec, std::string_view sequence) {
  Slots slots;
  for (const auto& word : words_of(sequence)) {
    if (word.is_text()) {
      slots.push_back({.part = word.token == "$A" ? Part::kFirst : Part::kSecond,
                       .id = -1,
                       .segment = word.segment});
      continue;
    }
    const int64_t id = id_of_special(spec, word.token);
    if (id < 0) return std::nullopt;
    slots.push_back({.part = Part::kSpecial, .id = id, .segment = word.segment});
  }
  return slots;
}

}  // namespace

const PretrainedKind kBertKind{.model = TokenizerSpec::Model::kWordPiece,
                               .specials = kBertSpecials,
                               .single = "[CLS] $A [SEP]",
                               .pair = "[CLS] $A [SEP] $B:1 [SEP]:1"};
const PretrainedKind kRobertaKind{.model = TokenizerSpec::Model::kByteBpe,
                                  .specials = kRobertaSpecials,
                                  .lstripped = "<mask>",
                                  .single = "<s> $A </s>",
                                  .pair = "<s> $A </s> </s> $B </s>",
                                  .trims_offsets = true};
const PretrainedKind kGpt2Kind{.model = TokenizerSpec::Model::kByteBpe, .specials = kGpt2Specials};

void make_pretrained(TokenizerSpec& spec, const PretrainedKind& kind) {
  spec.model = kind.model;
  spec.decoder = kind.model == TokenizerSpec::Model::kByteBpe ? TokenizerSpec::Decoder::kBytes
                                                              : TokenizerSpec::Decoder::kWordPiece;
  for (const auto& [piece, id] : spec.vocab) {
    if (std::find(kind.specials.begin(), kind.specials.end(), piece) == kind.specials.end()) {
      continue;
    }
    spec.added.push_back({.content = piece,
                          .id = id,
                          .lstrip = piece == kind.lstripped,
                          .normalized = false,
                          .special = true});
  }
  set_sequences(spec, kind);
}

void make_bert(TokenizerSpec& spec, bool lowercase) {
  spec.unk_token = "[UNK]";
  spec.normalizer = BertNormalizerOptions{.lowercase = lowercase};
  make_pretrained(spec, kBertKind);
}

void set_sequences(TokenizerSpec& spec, const PretrainedKind& kind) {
  if (kind.single.empty()) return;
  auto single = slots_of(spec, kind.single), pair = slots_of(spec, kind.pair);
  if (single && pair) spec.sequences = {.single = std::move(*single), .pair = std::move(*pair)};
}

std::vector<std::string> tokens_around_text(const PretrainedKind& kind) {
  std::vector<std::string> tokens;
  for (auto& word : words_of(kind.single)) {
    if (!word.is_text()) tokens.push_back(std::move(word.token));
  }
  return tokens;
}

std::string shown_template(const PretrainedKind& kind) {
  std::vector<std::string> words;
  for (auto& word : words_of(kind.single)) {
    words.push_back(word.is_text() ? "text" : std::move(word.token));
  }
  return join(words, kind.model == TokenizerSpec::Model::kByteBpe ? "" : " ");
}

}  // namespace stretto::text
