#include "families/language_model/folders/gguf_tokenizer.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "interchange/special_tokens.h"
#include "text/sequence_template.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

using text::TokenizerSpec;

/// Types of tokens, with llama.cpp's numbers.
enum GgufToken : int32_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserToken = 4,
  kUnusedToken = 5,
  kByteToken = 6,
};

/// "<0xE2>"
bool is_byte_piece(std::string_view piece) {
  constexpr size_t kSize = 6;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return piece.size() == kSize && piece.starts_with("<0x") && piece.ends_with('>') &&
         kDigits.find(piece[3]) != std::string_view::npos &&
         kDigits.find(piece[4]) != std::string_view::npos;
}

/// What stands behind a text.
std::vector<int64_t> tokens_behind(const text::SequenceTemplate& sequences) {
  std::vector<int64_t> ids;
  for (auto slot = sequences.single.rbegin(); slot != sequences.single.rend(); ++slot) {
    if (slot->part == text::SequenceTemplate::Part::kFirst) break;
    ids.insert(ids.begin(), slot->id);
  }
  return ids;
}

std::string problem_of_template(const TokenizerSpec& spec) {
  const auto specials = text::make_spec_tokenizer(spec, "tokenizer", 0)->specials();
  const auto front = spec.sequences.front(), behind = tokens_behind(spec.sequences);
  if (!front.empty() && front != std::vector<int64_t>{specials.bos}) {
    return "what stands in front of a text is not the token that begins one";
  }
  if (!behind.empty() && behind != std::vector<int64_t>{specials.eos}) {
    return "what stands behind a text is not the token that ends one";
  }
  return "";
}

std::string problem_of_bytes(const TokenizerSpec& spec) {
  if (spec.add_prefix_space) return "byte-level BPE with a space in front of a text";
  if (!spec.use_regex) return "byte-level BPE that does not split text";
  if (spec.ignore_merges != (spec.pattern == TokenizerSpec::Pattern::kLlama3)) {
    return "ignore_merges is that of another pattern";
  }
  return "";
}

/// The places where a piece can be cut in two: those of its characters.
std::vector<size_t> cuts_of(const std::string& piece) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < piece.size(); ++i) {
    constexpr unsigned char kTopBits = 0xC0, kContinuation = 0x80;
    if ((static_cast<unsigned char>(piece[i]) & kTopBits) != kContinuation) cuts.push_back(i);
  }
  return cuts;
}

/// Merges of one piece must follow each other: llama.cpp merges by the score of the piece.
std::string problem_of_order(const TokenizerSpec& spec) {
  std::unordered_map<std::string, size_t> last_of;
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const std::string whole = spec.merges[i].first + spec.merges[i].second;
    const auto found = last_of.find(whole);
    if (found != last_of.end() && found->second + 1 != i) {
      return "merges that make `" + whole + "` do not follow each other";
    }
    last_of[whole] = i;
  }
  return "";
}

/// llama.cpp merges whichever neighbours make a piece: no such merge may be missing.
std::string problem_of_characters(const TokenizerSpec& spec) {
  if (!spec.byte_fallback) return "a character without a piece is not spelt by bytes";
  if (spec.ignore_merges) return "ignore_merges with pieces of characters";
  const std::set<std::pair<std::string, std::string>> merges(spec.merges.begin(),
                                                             spec.merges.end());
  std::unordered_set<std::string> pieces, added;
  for (const auto& piece : spec.vocab) pieces.insert(piece.first);
  for (const auto& token : spec.added) added.insert(token.content);
  for (const auto& [piece, id] : spec.vocab) {
    if (is_byte_piece(piece) || added.contains(piece)) continue;
    for (const size_t cut : cuts_of(piece)) {
      const std::pair<std::string, std::string> parts{piece.substr(0, cut), piece.substr(cut)};
      if (!pieces.contains(parts.first) || !pieces.contains(parts.second)) continue;
      if (merges.contains(parts)) continue;
      return "`" + parts.first + "` and `" + parts.second + "` make a piece, and are not merged";
    }
  }
  return problem_of_order(spec);
}

std::string_view pre_tokenizer_of(const TokenizerSpec& spec) {
  if (spec.model == TokenizerSpec::Model::kCharacterBpe) return "default";
  if (spec.pattern == TokenizerSpec::Pattern::kLlama3) return "llama-bpe";
  return spec.pattern == TokenizerSpec::Pattern::kQwen2 ? "qwen2" : "gpt-2";
}

/// Pieces and their types by id.
struct GgufTokens {
  std::vector<std::string> pieces;
  std::vector<int32_t> types;
};

GgufTokens tokens_of(const TokenizerSpec& spec) {
  GgufTokens tokens;
  const auto put = [&](int64_t id, const std::string& piece, int32_t type) {
    const auto place = static_cast<size_t>(id);
    for (size_t i = tokens.pieces.size(); i <= place; ++i) {
      tokens.pieces.push_back("[UNUSED" + std::to_string(i) + "]");
      tokens.types.push_back(kUnusedToken);
    }
    tokens.pieces[place] = piece;
    tokens.types[place] = type;
  };
  const bool by_characters = spec.model == TokenizerSpec::Model::kCharacterBpe;
  for (const auto& [piece, id] : spec.vocab) {
    put(id, piece, by_characters && is_byte_piece(piece) ? kByteToken : kNormalToken);
  }
  for (const auto& token : spec.added) {
    put(token.id, token.content, token.special ? kControlToken : kUserToken);
  }
  if (by_characters && spec.unk_token) {
    if (const auto id = id_of_token(spec, *spec.unk_token)) {
      put(*id, *spec.unk_token, kUnknownToken);
    }
  }
  return tokens;
}

/// The earlier a piece is merged, the larger its score; what no merge makes is never asked for it.
std::vector<float> scores_of(const TokenizerSpec& spec, const std::vector<std::string>& pieces) {
  std::unordered_map<std::string, size_t> first_merge;
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    first_merge.emplace(spec.merges[i].first + spec.merges[i].second, i);
  }
  std::vector<float> scores;
  for (const auto& piece : pieces) {
    const auto found = first_merge.find(piece);
    const size_t rank = found == first_merge.end() ? spec.merges.size() : found->second;
    scores.push_back(-static_cast<float>(rank));
  }
  return scores;
}

void add_gguf_specials(const TokenizerSpec& spec, const std::string& end_token,
                       store::GgufFile& file) {
  const auto specials = text::make_spec_tokenizer(spec, "tokenizer", 0)->specials();
  const auto add = [&](const char* key, int64_t id) {
    if (id >= 0) file.set_u32(key, static_cast<uint32_t>(id));
  };
  add("tokenizer.ggml.bos_token_id", specials.bos);
  add("tokenizer.ggml.eos_token_id", specials.eos);
  add("tokenizer.ggml.unknown_token_id", specials.unk);
  add("tokenizer.ggml.padding_token_id", specials.pad);
  if (!end_token.empty()) {
    add("tokenizer.ggml.eot_token_id", id_of_token(spec, end_token).value_or(-1));
  }
  file.set_bool("tokenizer.ggml.add_bos_token", !spec.sequences.front().empty());
  file.set_bool("tokenizer.ggml.add_eos_token", !tokens_behind(spec.sequences).empty());
}

}  // namespace

std::string gguf_tokenizer_problem(const TokenizerSpec& tokenizer) {
  std::string problem;
  switch (tokenizer.model) {
    case TokenizerSpec::Model::kWordPiece:
      return "WordPiece, which its language models do not have";
    case TokenizerSpec::Model::kByteBpe:
      problem = problem_of_bytes(tokenizer);
      break;
    case TokenizerSpec::Model::kCharacterBpe:
      problem = problem_of_characters(tokenizer);
      break;
  }
  return problem.empty() ? problem_of_template(tokenizer) : problem;
}

void add_gguf_tokenizer(const TokenizerSpec& tokenizer, const std::string& end_token,
                        store::GgufFile& file) {
  const bool by_characters = tokenizer.model == TokenizerSpec::Model::kCharacterBpe;
  const auto tokens = tokens_of(tokenizer);
  file.set_string("tokenizer.ggml.model", by_characters ? "llama" : "gpt2");
  file.set_string("tokenizer.ggml.pre", pre_tokenizer_of(tokenizer));
  file.set_strings("tokenizer.ggml.tokens", tokens.pieces);
  file.set_i32s("tokenizer.ggml.token_type", tokens.types);
  if (by_characters) {
    file.set_f32s("tokenizer.ggml.scores", scores_of(tokenizer, tokens.pieces));
    file.set_bool("tokenizer.ggml.add_space_prefix",
                  tokenizer.space_prefix != TokenizerSpec::SpacePrefix::kNever);
  } else {
    std::vector<std::string> merges;
    for (const auto& [left, right] : tokenizer.merges) merges.push_back(left + " " + right);
    file.set_strings("tokenizer.ggml.merges", merges);
  }
  add_gguf_specials(tokenizer, end_token, file);
}

}  // namespace stretto::interchange
