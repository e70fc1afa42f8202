#include "text/tokenizer_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "text/characters.h"
#include "text/code_points.h"
#include "text/spec_parts.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

namespace fs = std::filesystem;

std::string_view without_byte_order_mark(std::string_view bytes) {
  return bytes.substr(bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

/// In a vocab.json, `model` is a token with a number.
bool has_model_object(std::string_view json) {
  constexpr std::string_view kKey = "\"model\"", kSpace = " \t\r\n";
  for (size_t at = json.find(kKey); at != std::string_view::npos; at = json.find(kKey, at + 1)) {
    const size_t colon = json.find_first_not_of(kSpace, at + kKey.size());
    if (colon == std::string_view::npos || json[colon] != ':') continue;
    const size_t value = json.find_first_not_of(kSpace, colon + 1);
    if (value != std::string_view::npos && json[value] == '{') return true;
  }
  return false;
}

bool has_line(std::string_view bytes, std::string_view line) {
  for (size_t at = bytes.find(line); at != std::string_view::npos; at = bytes.find(line, at + 1)) {
    const size_t end = at + line.size();
    const bool begins = at == 0 || bytes[at - 1] == '\n';
    if (begins && (end == bytes.size() || bytes[end] == '\n' || bytes[end] == '\r')) return true;
  }
  return false;
}

}  // namespace

bool is_json_model(std::string_view bytes) {
  constexpr std::string_view kSpace = " \t\r\n";
  bytes = without_byte_order_mark(bytes);
  const size_t first = bytes.find_first_not_of(kSpace);
  if (first == std::string_view::npos || bytes[first] != '{') return false;
  // A SentencePiece model begins with a line feed, and the length of its first piece may be a
  // brace.
  const size_t second = bytes.find_first_not_of(kSpace, first + 1);
  return second != std::string_view::npos && (bytes[second] == '"' || bytes[second] == '}');
}

TokenizerFile kind_of_file(std::string_view bytes, const fs::path& path) {
  if (path.extension() == ".model") return TokenizerFile::kSentencePiece;
  if (is_json_model(bytes)) {
    return has_model_object(bytes) ? TokenizerFile::kTokenizerJson : TokenizerFile::kVocabJson;
  }
  if (bytes.find('\0') != std::string_view::npos) return TokenizerFile::kSentencePiece;
  if (is_character_file(bytes)) return TokenizerFile::kCharacters;
  bytes = without_byte_order_mark(bytes);
  const bool is_bert =
      has_line(bytes, "[UNK]") && has_line(bytes, "[CLS]") && has_line(bytes, "[SEP]");
  return is_bert ? TokenizerFile::kBertVocab : TokenizerFile::kVocabulary;
}

std::string model_bytes(std::string_view bytes, const fs::path& path,
                        const TokenizerFileOptions& options) {
  TokenizerFile kind = kind_of_file(bytes, path);
  if (kind == TokenizerFile::kVocabulary && options.is_wordpiece) kind = TokenizerFile::kBertVocab;
  switch (kind) {
    case TokenizerFile::kBertVocab:
      return write_tokenizer_json(parse_vocab_txt(bytes, path.string(), options.lowercase));
    case TokenizerFile::kVocabJson: {
      const fs::path merges =
          options.merges.empty() ? path.parent_path() / "merges.txt" : options.merges;
      return write_tokenizer_json(parse_vocab_json(
          bytes, path.string(), read_file(merges, kMaxTokenizerBytes), merges.string()));
    }
    case TokenizerFile::kSentencePiece:
    case TokenizerFile::kCharacters:
    case TokenizerFile::kTokenizerJson:
    case TokenizerFile::kVocabulary:
      break;
  }
  return std::string(bytes);
}

std::shared_ptr<const Tokenizer> make_model_tokenizer(const std::string& bytes,
                                                      std::string_view where) {
  if (is_json_model(bytes)) return make_json_tokenizer(bytes, where);
  if (is_character_file(bytes)) return make_characters(bytes, where);
  return make_sentencepiece(bytes, where);
}

}  // namespace stretto::text
