#include <algorithm>

#include "base/hash.h"
#include "text/code_points.h"
#include "text/leading_specials.h"
#include "text/sentencepiece_library.h"
#include "text/subwords.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& model_bytes, std::string_view where)
      : library_(load_sentencepiece(model_bytes, where)), fingerprint_(xxh3_64(model_bytes)) {
    make_id_tables();
  }

  SpecialIds specials() const override { return kLeadingSpecials; }

  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    std::vector<int> model_ids;
    require_split(processor_.Encode(line, &model_ids));
    ids.reserve(ids.size() + model_ids.size());
    for (const int id : model_ids) ids.push_back(to_ours_[static_cast<size_t>(id)]);
  }

  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    sentencepiece::ImmutableSentencePieceText split;
    require_split(processor_.Encode(line, split.mutable_proto()));
    const auto before = code_points_before(line);
    for (const auto& piece : split.pieces()) {
      ids.push_back(to_ours_[static_cast<size_t>(piece.id())]);
      spans.push_back({before.at(piece.begin()), before.at(piece.end())});
    }
  }

  bool fills_places() const override { return false; }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<int> model_ids;
    model_ids.reserve(ids.size());
    for (const int64_t id : ids) {
      if (is_silent(id)) continue;
      const bool known = id >= 0 && id < size();
      model_ids.push_back(known ? to_model_[static_cast<size_t>(id)] : processor_.unk_id());
    }
    std::string text;
    require_joined(processor_.Decode(model_ids, &text));
    return text;
  }

  std::string piece(int64_t id) const override {
    if (id < 0 || id >= size()) id = kLeadingSpecials.unk;
    if (id < kNumLeadingSpecials) return kLeadingPieces[static_cast<size_t>(id)];
    return processor_.IdToPiece(to_model_[static_cast<size_t>(id)]);
  }

  int64_t size() const override { return static_cast<int64_t>(to_model_.size()); }
  uint64_t fingerprint() const override { return fingerprint_; }
  bool continues_word(int64_t id) const override {
    return id >= kNumLeadingSpecials && !piece(id).starts_with(kWordStart);
  }
  SubwordModel subword_model() const override {
    SubwordModel model{.kind = kinds_.model};
    for (size_t id = 0; id < std::min(to_ours_.size(), kinds_.is_ordinary.size()); ++id) {
      const auto own = static_cast<int>(id);
      if (!kinds_.is_ordinary[id]) continue;
      model.pieces.push_back({.text = processor_.IdToPiece(own),
                              .score = processor_.GetScore(own),
                              .id = to_ours_[id]});
    }
    return model;
  }

 private:
  /// The four specials come first wherever the model has them; those it lacks have an id all the
  /// same, which encode() never gives.
  void make_id_tables() {
    const int specials[kNumLeadingSpecials] = {processor_.pad_id(), processor_.unk_id(),
                                               processor_.bos_id(), processor_.eos_id()};
    const int num_pieces = processor_.GetPieceSize();
    to_ours_.assign(static_cast<size_t>(num_pieces), -1);
    for (int64_t special = 0; special < kNumLeadingSpecials; ++special) {
      to_model_.push_back(specials[special]);
      if (specials[special] >= 0) to_ours_[static_cast<size_t>(specials[special])] = special;
    }
    for (int id = 0; id < num_pieces; ++id) {
      int64_t& ours = to_ours_[static_cast<size_t>(id)];
      if (ours >= 0) continue;
      ours = static_cast<int64_t>(to_model_.size());
      to_model_.push_back(id);
    }
  }

  std::unique_ptr<const SentencePieceLibrary> library_;
  const sentencepiece::SentencePieceProcessor& processor_ = library_->processor;
  const SentencePieceKinds& kinds_ = library_->kinds;
  uint64_t fingerprint_;
  std::vector<int> to_model_;     ///< our id -> the model's, -1 = the model has no such special
  std::vector<int64_t> to_ours_;  ///< the model's id -> ours
};

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece(std::string model_bytes,
                                                    std::string_view where) {
  return std::make_shared<SentencePieceTokenizer>(model_bytes, where);
}

}  // namespace stretto::text
