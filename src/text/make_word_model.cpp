#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/tokenizer_spec.h"
#include "text/wordpiece.h"

namespace stretto::text {
namespace {

std::vector<ByteBpeModel::Merge> resolved_merges(const TokenizerSpec& spec,
                                                 std::string_view where) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (const auto& [piece, id] : spec.vocab) ids[piece] = id;
  std::vector<ByteBpeModel::Merge> merges;
  merges.reserve(spec.merges.size());
  for (const auto& [left, right] : spec.merges) {
    const auto id = [&](const std::string& piece) {
      const auto found = ids.find(piece);
      if (found != ids.end()) return static_cast<int32_t>(found->second);
      throw Error(ExitCode::kBadData,
                  std::string(where) + ": merge " + std::to_string(merges.size() + 1) + " needs `" +
                      printable(piece, 60) + "`, which is not in the vocabulary",
                  "give merges and vocabulary of one tokenizer");
    };
    merges.push_back({id(left), id(right), id(left + right)});
  }
  return merges;
}

int64_t id_in(const PieceIds& vocab, std::string_view piece) {
  for (const auto& [text, id] : vocab) {
    if (text == piece) return id;
  }
  return -1;
}

}  // namespace

std::unique_ptr<const WordModel> make_word_model(const TokenizerSpec& spec,
                                                 std::string_view where) {
  const int64_t unk = spec.unk_token ? id_in(spec.vocab, *spec.unk_token) : -1;
  if (spec.model == TokenizerSpec::Model::kWordPiece) {
    return std::make_unique<WordPieceModel>(
        spec.vocab, WordPieceOptions{.unk_id = unk,
                                     .continuing_prefix = spec.continuing_prefix,
                                     .max_word_chars = spec.max_word_chars});
  }
  ByteBpeOptions options{.of_characters = spec.model == TokenizerSpec::Model::kCharacterBpe,
                         .byte_fallback = spec.byte_fallback,
                         .unk_id = {},
                         .fuse_unk = spec.fuse_unk,
                         .ignore_merges = spec.ignore_merges};
  if (unk >= 0) options.unk_id = unk;
  return std::make_unique<ByteBpeModel>(spec.vocab, resolved_merges(spec, where), options);
}

}  // namespace stretto::text
