#include <algorithm>
#include <string_view>

#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using Slot = SequenceTemplate::Slot;
constexpr auto kSpecial = SequenceTemplate::Part::kSpecial;
constexpr auto kSecond = SequenceTemplate::Part::kSecond;

int64_t id_of_special(const TokenizerSpec& spec, std::string_view content) {
  const auto found =
      std::find_if(spec.added.begin(), spec.added.end(),
                   [&](const AddedToken& token) { return token.content == content; });
  return found == spec.added.end() ? -1 : found->id;
}

void add_specials(TokenizerSpec& spec, std::initializer_list<std::string_view> specials) {
  for (const auto& [piece, id] : spec.vocab) {
    if (std::find(specials.begin(), specials.end(), piece) == specials.end()) continue;
    spec.added.push_back({.content = piece, .id = id, .normalized = false, .special = true});
  }
}

}  // namespace

void make_bert(TokenizerSpec& spec, bool lowercase) {
  spec.model = TokenizerSpec::Model::kWordPiece;
  spec.unk_token = "[UNK]";
  spec.normalizer = BertNormalizerOptions{.lowercase = lowercase};
  spec.decoder = TokenizerSpec::Decoder::kWordPiece;
  add_specials(spec, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  set_bert_sequences(spec);
}

void set_bert_sequences(TokenizerSpec& spec) {
  const int64_t cls = id_of_special(spec, "[CLS]"), sep = id_of_special(spec, "[SEP]");
  if (cls < 0 || sep < 0) return;
  const Slot begin{.part = kSpecial, .id = cls}, first, end{.part = kSpecial, .id = sep};
  const Slot second{.part = kSecond, .segment = 1};
  const Slot second_end{.part = kSpecial, .id = sep, .segment = 1};
  spec.sequences = {.single = {begin, first, end}, .pair = {begin, first, end, second, second_end}};
}

void make_roberta(TokenizerSpec& spec) {
  spec.model = TokenizerSpec::Model::kByteBpe;
  spec.decoder = TokenizerSpec::Decoder::kBytes;
  add_specials(spec, {"<s>", "<pad>", "</s>", "<unk>", "<mask>"});
  for (AddedToken& token : spec.added) token.lstrip = token.content == "<mask>";
  set_roberta_sequences(spec);
}

void set_roberta_sequences(TokenizerSpec& spec) {
  const int64_t bos = id_of_special(spec, "<s>"), eos = id_of_special(spec, "</s>");
  if (bos < 0 || eos < 0) return;
  const Slot begin{.part = kSpecial, .id = bos}, first, end{.part = kSpecial, .id = eos};
  const Slot second{.part = kSecond};
  spec.sequences = {.single = {begin, first, end}, .pair = {begin, first, end, end, second, end}};
}

}  // namespace stretto::text
