#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/json_fields.h"
#include "text/pretrained_kind.h"
#include "text/spec_parts.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

/// Calls `take(line, place)` for each line, without its end; place() names it. A file may have more
/// lines than there is time to name.
template <class Take>
void for_each_line(std::string_view bytes, std::string_view where, Take take) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !bytes.empty(); ++number) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto place = [&] { return std::string(where) + ":" + std::to_string(number); };
    if (!is_valid_utf8(line)) {
      throw Error(ExitCode::kBadData, place() + ": this line is not UTF-8 text",
                  "save the file as UTF-8");
    }
    take(line, place);
  }
}

std::string_view without_trailing_space(std::string_view line) {
  while (!line.empty()) {
    size_t last = line.size() - 1;
    while (continues_code_point(line[last])) --last;
    size_t at = last;
    if (!is_white_space(next_code_point(line, at))) break;
    line = line.substr(0, last);
  }
  return line;
}

bool has_capital(std::string_view piece) {
  for (size_t at = 0; at < piece.size();) {
    const char32_t c = next_code_point(piece, at);
    if (lower(c) != c) return true;
  }
  return false;
}

/// A few may be there whose lower case Unicode did not know when the vocabulary was made.
bool shows_capitals(const PieceIds& vocab) {
  constexpr std::ptrdiff_t kOneIn = 100;
  const auto count = std::count_if(vocab.begin(), vocab.end(), [](const auto& piece) {
    const bool is_special = piece.first.starts_with('[') && piece.first.ends_with(']');
    return !is_special && has_capital(piece.first);
  });
  return count * kOneIn > std::ssize(vocab);
}

/// The pieces of a vocab.json, without its JSON.
PieceIds read_vocabulary(std::string_view bytes, std::string_view where, Allowance& allowance) {
  const uint64_t before = allowance.taken();
  const nlohmann::json json = parse_json(bytes, where, kMaxTokenizerBytes, allowance);
  const uint64_t num_json = allowance.taken() - before;
  PieceIds pieces = read_piece_ids(JsonValue(json, std::string(where) + ":"), allowance);
  allowance.give_back(num_json);
  return pieces;
}

}  // namespace

TokenizerSpec parse_vocab_txt(std::string_view bytes, std::string_view where,
                              std::optional<bool> lowercase) {
  Allowance allowance{std::string(where)};
  return parse_vocab_txt(bytes, where, lowercase, allowance);
}

TokenizerSpec parse_vocab_txt(std::string_view bytes, std::string_view where,
                              std::optional<bool> lowercase, Allowance& allowance) {
  allowance.add_read(bytes.size());
  std::unordered_map<std::string_view, int64_t> ids;
  int64_t next = 0;
  for_each_line(bytes, where, [&](std::string_view line, const auto& place) {
    const std::string_view piece = without_trailing_space(line);
    if (!piece.empty()) {
      const auto [known, is_new] = ids.insert_or_assign(piece, next);
      if (is_new) take_piece(piece, place(), allowance);
    }
    ++next;
  });
  if (!ids.contains("[UNK]")) {
    throw Error(ExitCode::kBadData, std::string(where) + ": the vocabulary has no token `[UNK]`",
                "give BERT's vocab.txt; another list of tokens is tokenizer.type = \"vocab\"");
  }
  TokenizerSpec spec;
  for (const auto& [piece, id] : ids) spec.vocab.emplace_back(piece, id);
  std::sort(spec.vocab.begin(), spec.vocab.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  require_dense(spec.vocab, std::string(where));
  make_bert(spec, lowercase.value_or(!shows_capitals(spec.vocab)));
  return spec;
}

TokenizerSpec parse_vocab_json(std::string_view vocab_bytes, std::string_view vocab_where,
                               std::string_view merges_bytes, std::string_view merges_where,
                               bool add_prefix_space) {
  Allowance allowance{std::string(vocab_where)};
  return parse_vocab_json(vocab_bytes, vocab_where, merges_bytes, merges_where, add_prefix_space,
                          allowance);
}

TokenizerSpec parse_vocab_json(std::string_view vocab_bytes, std::string_view vocab_where,
                               std::string_view merges_bytes, std::string_view merges_where,
                               bool add_prefix_space, Allowance& allowance) {
  TokenizerSpec spec;
  spec.model = TokenizerSpec::Model::kByteBpe;
  spec.decoder = TokenizerSpec::Decoder::kBytes;
  spec.add_prefix_space = add_prefix_space;
  spec.vocab = read_vocabulary(vocab_bytes, vocab_where, allowance);
  allowance.add_read(merges_bytes.size());
  for_each_line(merges_bytes, merges_where, [&](std::string_view line, const auto& place) {
    if (line.starts_with("#version")) return;
    spec.merges.push_back(parse_merge(line, place()));
    take_merge(spec.merges.back(), place(), allowance);
  });
  return spec;
}

}  // namespace stretto::text
