#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/sentencepiece_library.h"
#include "text/spec_parts.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

// Each place of a piece is looked up twice, so that the time grows with the square of its length.
constexpr size_t kMaxMergedPieceBytes = 512;
constexpr int64_t kNumUnscoredPieces = 3;  // unknown, beginning, end

/// Two pieces that are joined to one.
struct Join {
  double score = 0;                           ///< of what they become: the larger, the earlier
  int64_t left_length = 0, right_length = 0;  ///< in code points
  std::pair<std::string, std::string> pieces;
};

class JoinFinder {
 public:
  JoinFinder(const PieceIds& vocab, std::string place, Allowance& allowance)
      : place_(std::move(place)), allowance_(allowance) {
    for (const auto& [piece, id] : vocab) known_.insert(piece);
  }

  /// Adds all ways in which two pieces are this one.
  void add(const std::string& piece, double score) {
    require_readable(piece);
    const auto length = static_cast<int64_t>(code_points_before(piece).back());
    int64_t before = 0;
    for (size_t at = 0; at < piece.size();) {
      next_code_point(piece, at);
      ++before;
      if (at == piece.size()) break;
      const std::string_view left(piece.data(), at), right(piece.data() + at, piece.size() - at);
      if (!known_.contains(left) || !known_.contains(right)) continue;
      joins_.push_back({.score = score,
                        .left_length = before,
                        .right_length = length - before,
                        .pieces = {std::string(left), std::string(right)}});
      take_merge(joins_.back().pieces, place_, allowance_);
    }
  }

  /// By falling score, and of equal ones by falling lengths of both parts.
  std::vector<std::pair<std::string, std::string>> sorted() {
    const auto key = [](const Join& join) {
      return std::tuple(join.score, join.left_length, join.right_length);
    };
    std::stable_sort(joins_.begin(), joins_.end(),
                     [&](const Join& a, const Join& b) { return key(a) > key(b); });
    std::vector<std::pair<std::string, std::string>> merges;
    merges.reserve(joins_.size());
    for (Join& join : joins_) merges.push_back(std::move(join.pieces));
    return merges;
  }

 private:
  void require_readable(const std::string& piece) const {
    const bool is_short = piece.size() <= kMaxMergedPieceBytes;
    if (is_short && is_valid_utf8(piece)) return;
    throw Error(ExitCode::kBadData,
                place_ + ": the piece `" + printable(piece, 20) +
                    (is_short ? "` is not UTF-8 text" : "` has more than 512 bytes"),
                "give the tokenizer.model that was saved with the weights");
  }

  std::string place_;
  Allowance& allowance_;
  std::unordered_set<std::string_view> known_;
  std::vector<Join> joins_;
};

}  // namespace

TokenizerSpec parse_sentencepiece_bpe(const std::string& bytes, std::string_view where,
                                      Allowance& allowance) {
  allowance.add_read(bytes.size());
  const std::string place(where);
  const auto library = load_sentencepiece(bytes, where);
  if (library->kinds.model != SubwordModel::Kind::kBpe) {
    throw Error(ExitCode::kBadData, place + ": this SentencePiece model is not of BPE",
                "language models with BPE are imported: train the model with "
                "--model_type=bpe --byte_fallback");
  }
  const auto& processor = library->processor;
  TokenizerSpec spec;
  spec.model = TokenizerSpec::Model::kCharacterBpe;
  spec.unk_token = processor.IdToPiece(processor.unk_id());
  spec.fuse_unk = spec.byte_fallback = true;
  spec.space_prefix = TokenizerSpec::SpacePrefix::kDoubled;
  spec.decoder = TokenizerSpec::Decoder::kMarks;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    spec.vocab.emplace_back(processor.IdToPiece(id), id);
    take_piece(spec.vocab.back().first, place, allowance);
    const bool is_special = processor.IsControl(id);
    if (!is_special && !library->kinds.is_user_defined[static_cast<size_t>(id)]) continue;
    spec.added.push_back(
        {.content = spec.vocab.back().first, .id = id, .normalized = false, .special = is_special});
  }
  JoinFinder joins(spec.vocab, place, allowance);
  for (const auto& [piece, id] : spec.vocab) {
    joins.add(piece, id < kNumUnscoredPieces
                         ? 0.0
                         : static_cast<double>(processor.GetScore(static_cast<int>(id))));
  }
  spec.merges = joins.sorted();
  return spec;
}

}  // namespace stretto::text
