#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/leading_specials.h"
#include "text/sentencepiece_check.h"
#include "text/subwords.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& model_bytes, SentencePieceKinds kinds,
                         std::string_view where)
      : kinds_(std::move(kinds)), fingerprint_(xxh3_64(model_bytes)) {
    const auto status = processor_.LoadFromSerializedProto(model_bytes);
    if (!status.ok()) {
      throw Error(ExitCode::kBadData,
                  std::string(where) +
                      ": SentencePiece cannot use this model: " + printable(status.message(), 300),
                  "give a .model file as written by spm_train or by `stretto tokenizer`");
    }
    make_id_tables();
  }

  SpecialIds specials() const override { return kLeadingSpecials; }

  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    std::vector<int> model_ids;
    const auto status = processor_.Encode(line, &model_ids);
    require_split(status);
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

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<int> model_ids;
    model_ids.reserve(ids.size());
    for (const int64_t id : ids) {
      if (is_silent(id)) continue;
      const bool known = id >= 0 && id < size();
      model_ids.push_back(known ? to_model_[static_cast<size_t>(id)] : processor_.unk_id());
    }
    std::string text;
    const auto status = processor_.Decode(model_ids, &text);
    if (!status.ok()) {
      throw Error(ExitCode::kBadData,
                  "SentencePiece cannot join pieces: " + printable(status.message(), 300),
                  "`stretto tokenizer decode MODEL < PIECES` tries the model alone; another copy "
                  "of it may be whole");
    }
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
  static void require_split(const sentencepiece::util::Status& status) {
    if (status.ok()) return;
    throw Error(ExitCode::kBadData,
                "SentencePiece cannot split a line: " + printable(status.message(), 300),
                "`stretto tokenizer encode MODEL < TEXT` tries the model alone; another copy of "
                "it may be whole");
  }

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

  sentencepiece::SentencePieceProcessor processor_;
  SentencePieceKinds kinds_;
  uint64_t fingerprint_;
  std::vector<int> to_model_;     ///< our id -> the model's, -1 = the model has no such special
  std::vector<int64_t> to_ours_;  ///< the model's id -> ours
};

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece(std::string model_bytes,
                                                    std::string_view where) {
  SentencePieceKinds kinds = check_sentencepiece_model(model_bytes, where);
  try {
    return std::make_shared<SentencePieceTokenizer>(model_bytes, std::move(kinds), where);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& failure) {  // the library's trie builder throws its own kind
    throw Error(ExitCode::kBadData,
                std::string(where) +
                    ": SentencePiece cannot use this model: " + printable(failure.what(), 300),
                "give a .model file as written by spm_train or by `stretto tokenizer`");
  }
}

}  // namespace stretto::text
