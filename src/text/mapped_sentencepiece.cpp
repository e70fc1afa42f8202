#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/sentencepiece_library.h"
#include "text/spec_parts.h"
#include "text/subwords.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

constexpr const char *kMarianPad = "<pad>", *kMarianUnk = "<unk>", *kMarianEos = "</s>";

/// A vocab.json: pieces of one side or of both, with their ids.
struct MarianVocabulary {
  std::vector<std::string> pieces;  ///< by id; empty where no piece has it
  std::unordered_map<std::string, int64_t> ids;
  SpecialIds specials;
};

int64_t required_id(const MarianVocabulary& vocabulary, const std::string& piece,
                    std::string_view where) {
  const auto found = vocabulary.ids.find(piece);
  if (found != vocabulary.ids.end()) return found->second;
  throw Error(ExitCode::kBadData, std::string(where) + ": the vocabulary has no `" + piece + "`",
              "give the vocab.json that was saved with a Marian model");
}

MarianVocabulary read_marian_vocabulary(const MappedIds& given) {
  const auto where = given.where;
  Allowance allowance{std::string(where)};
  const nlohmann::json json = parse_json(given.bytes, where, kMaxTokenizerBytes, allowance);
  MarianVocabulary vocabulary;
  for (auto& [piece, id] : read_piece_ids(JsonValue(json, std::string(where) + ":"), allowance)) {
    vocabulary.pieces.resize(static_cast<size_t>(id) + 1);
    vocabulary.pieces.back() = piece;
    vocabulary.ids.emplace(std::move(piece), id);
  }
  const int64_t pad = required_id(vocabulary, kMarianPad, where);
  vocabulary.specials = {
      .pad = pad,
      .unk = required_id(vocabulary, kMarianUnk, where),
      .bos = given.begin.empty() ? pad : required_id(vocabulary, std::string(given.begin), where),
      .eos = required_id(vocabulary, kMarianEos, where)};
  return vocabulary;
}

/// A line may begin with the language that is wanted: `>>fra<<`. Its length in bytes, or 0.
size_t length_of_language(std::string_view line) {
  constexpr std::string_view kOpen = ">>", kClose = "<<";
  if (!line.starts_with(kOpen)) return 0;
  const size_t close = line.find(kClose);
  return close == std::string_view::npos ? 0 : close + kClose.size();
}

/// The pieces of a SentencePiece model, whose ids a vocabulary gives. The model's own are not used.
class MappedSentencePiece final : public Tokenizer {
 public:
  MappedSentencePiece(const std::string& model_bytes, std::string_view where, const MappedIds& ids)
      : library_(load_sentencepiece(model_bytes, where)),
        vocabulary_(read_marian_vocabulary(ids)),
        fingerprint_(mix64(xxh3_64(model_bytes), mix64(xxh3_64(ids.bytes), xxh3_64(ids.begin)))) {}

  SpecialIds specials() const override { return vocabulary_.specials; }

  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    const size_t language = length_of_language(line);
    if (language > 0) ids.push_back(id_of(std::string(line.substr(0, language))));
    std::vector<std::string> split;
    require_split(library_->processor.Encode(line.substr(language), &split));
    ids.reserve(ids.size() + split.size());
    for (const auto& one : split) ids.push_back(id_of(one));
  }

  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    const size_t language = length_of_language(line);
    const auto before = code_points_before(line);
    if (language > 0) {
      ids.push_back(id_of(std::string(line.substr(0, language))));
      spans.push_back({0, before.at(language)});
    }
    sentencepiece::ImmutableSentencePieceText split;
    require_split(library_->processor.Encode(line.substr(language), split.mutable_proto()));
    for (const auto& one : split.pieces()) {
      ids.push_back(id_of(one.piece()));
      spans.push_back({before.at(language + one.begin()), before.at(language + one.end())});
    }
  }

  bool fills_places() const override { return false; }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<std::string> split;
    for (const int64_t id : ids) {
      if (is_silent_special(id)) continue;
      split.push_back(piece(id));
    }
    std::string text;
    require_joined(library_->processor.Decode(split, &text));
    // Pieces of the other side's model come back as they are.
    for (size_t at = text.find(kWordStart); at != std::string::npos;
         at = text.find(kWordStart, at + 1)) {
      text.replace(at, kWordStart.size(), " ");
    }
    return trim(text);
  }

  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size()) return kMarianUnk;
    const std::string& found = vocabulary_.pieces[static_cast<size_t>(id)];
    return found.empty() ? kMarianUnk : found;
  }

  int64_t size() const override { return std::ssize(vocabulary_.pieces); }
  uint64_t fingerprint() const override { return fingerprint_; }
  bool continues_word(int64_t id) const override {
    return id != vocabulary_.specials.unk && !is_silent_special(id) &&
           !piece(id).starts_with(kWordStart);
  }
  SubwordModel subword_model() const override {
    SubwordModel model{.kind = library_->kinds.model};
    const auto& is_ordinary = library_->kinds.is_ordinary;
    for (size_t id = 0; id < is_ordinary.size(); ++id) {
      if (!is_ordinary[id]) continue;
      const auto own = static_cast<int>(id);
      const auto found = vocabulary_.ids.find(library_->processor.IdToPiece(own));
      if (found == vocabulary_.ids.end()) continue;
      model.pieces.push_back(
          {.text = found->first, .score = library_->processor.GetScore(own), .id = found->second});
    }
    return model;
  }

 private:
  bool is_silent_special(int64_t id) const {
    const auto& own = vocabulary_.specials;
    return id == own.pad || id == own.bos || id == own.eos;
  }
  // Text that the model does not know comes back as it is: it must not end a sentence.
  int64_t id_of(const std::string& piece) const {
    const auto& specials = vocabulary_.specials;
    const auto found = vocabulary_.ids.find(piece);
    if (found == vocabulary_.ids.end()) return specials.unk;
    const bool is_text = found->second != specials.pad && found->second != specials.eos;
    return is_text ? found->second : specials.unk;
  }

  std::unique_ptr<const SentencePieceLibrary> library_;
  MarianVocabulary vocabulary_;
  uint64_t fingerprint_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_mapped_sentencepiece(const std::string& model_bytes,
                                                           std::string_view where,
                                                           const MappedIds& ids) {
  return std::make_shared<MappedSentencePiece>(model_bytes, where, ids);
}

}  // namespace stretto::text
