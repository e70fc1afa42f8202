#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/code_points.h"
#include "text/offsets.h"
#include "text/piece_decoder.h"
#include "text/space_marks.h"
#include "text/subwords.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"
#include "text/word_cache.h"

namespace stretto::text {
namespace {

/// What one thread needs to encode a line.
struct Workspace {
  explicit Workspace(const WordModel& model) : cache(model) {}
  WordCache cache;
  NormalizedText normalized;
  std::string prefixed;
  std::vector<ByteRange> words;
};

/// Lends a workspace to each thread that encodes, and keeps them for the next line.
class Workspaces {
 public:
  explicit Workspaces(const WordModel& model) : model_(model) {}

  std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>(model_);
    auto workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(workspace));
  }

 private:
  const WordModel& model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

class SpecTokenizer final : public Tokenizer {
 public:
  SpecTokenizer(const TokenizerSpec& spec, std::string_view where, uint64_t fingerprint);

  SpecialIds specials() const override { return specials_; }
  SequenceTemplate sequences() const override { return spec_.sequences; }
  void encode(std::string_view line, std::vector<int64_t>& ids) const override {
    encode_into(line, ids, nullptr);
  }
  void encode_with_spans(std::string_view line, std::vector<int64_t>& ids,
                         std::vector<CodePointSpan>& spans) const override {
    encode_into(line, ids, &spans);
  }
  std::string decode(const std::vector<int64_t>& ids) const override;
  std::string piece(int64_t id) const override;
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  uint64_t fingerprint() const override { return fingerprint_; }
  bool continues_word(int64_t id) const override {
    return id >= 0 && id < size() && continues_word_[static_cast<size_t>(id)];
  }

 private:
  class Line;
  void encode_into(std::string_view line, std::vector<int64_t>& ids,
                   std::vector<CodePointSpan>* spans) const;
  bool normalise(std::string_view text, bool is_first, bool with_origin, NormalizedText& out) const;
  void split_words(std::string_view text, std::vector<ByteRange>& words) const;
  bool is_found_normalised(const AddedToken& token) const;
  void collect_pieces(const PieceIds& vocab, const std::vector<AddedToken>& added);
  void find_specials();
  void find_continuing(const std::vector<AddedToken>& added);
  int64_t first_of(std::initializer_list<const char*> pieces) const;
  AddedTokens added_tokens(bool normalized, std::string_view where) const;

  TokenizerSpec spec_;  ///< without vocabulary and merges
  uint64_t fingerprint_;
  std::vector<std::string> pieces_;
  std::vector<EndSpaces> end_spaces_;  ///< of each piece; empty where offsets are not trimmed
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<bool> is_silent_;  ///< left out of decoded text
  std::vector<bool> continues_word_;
  SpecialIds specials_;
  std::optional<BertNormalizer> normalizer_;
  AddedTokens raw_added_, normalized_added_;
  std::unique_ptr<const WordModel> model_;
  mutable Workspaces workspaces_;
};

/// One line on its way to ids.
class SpecTokenizer::Line {
 public:
  Line(const SpecTokenizer& tokenizer, Workspace& work, std::string_view line,
       std::vector<int64_t>& ids, std::vector<CodePointSpan>* spans)
      : tokenizer_(tokenizer),
        work_(work),
        line_(line),
        ids_(ids),
        spans_(spans),
        num_before_(ids.size()),
        counter_(line) {}

  void encode() {
    if (tokenizer_.raw_added_.empty()) return encode_raw({0, line_.size()});
    std::vector<AddedTokens::Part> parts;
    tokenizer_.raw_added_.split(line_, parts);
    for (const auto& part : parts) {
      if (part.token == nullptr) {
        encode_raw(part.range);
      } else {
        emit_added(part, {.text = line_, .origin = nullptr, .base = 0});
      }
    }
  }

 private:
  /// A text that was made from the line.
  struct View {
    std::string_view text;
    const std::vector<uint32_t>* origin;  ///< of each byte; null = the text is that of the line
    size_t base;                          ///< byte of the line that origins are counted from
  };

  size_t byte_in_line(const View& view, size_t byte) const {
    if (view.origin != nullptr) return view.base + (*view.origin)[byte];
    while (continues_code_point(view.text[byte])) --byte;
    return view.base + byte;
  }

  CodePointSpan span_of(const View& view, ByteRange range) {
    const int64_t begin = counter_.before(byte_in_line(view, range.begin));
    return {begin, counter_.before(byte_in_line(view, range.end - 1)) + 1};
  }

  void add_span(CodePointSpan span, EndSpaces spaces, bool is_first) {
    const auto& trim = tokenizer_.spec_.trim_offsets;
    spans_->push_back(trim ? trimmed(span, spaces, is_first, *trim) : span);
  }

  void emit_added(const AddedTokens::Part& part, const View& view) {
    if (spans_ != nullptr) {
      add_span(span_of(view, part.range), end_spaces(part.range.of(view.text)),
               ids_.size() == num_before_);
    }
    ids_.push_back(part.token->id);
  }

  void encode_raw(ByteRange range) {
    View view{.text = range.of(line_), .origin = nullptr, .base = range.begin};
    if (!view.text.empty() &&
        tokenizer_.normalise(view.text, range.begin == 0, spans_ != nullptr, work_.normalized)) {
      view.text = work_.normalized.text;
      view.origin = &work_.normalized.origin;
    }
    if (tokenizer_.normalized_added_.empty()) return encode_words(view, {0, view.text.size()});
    std::vector<AddedTokens::Part> parts;
    tokenizer_.normalized_added_.split(view.text, parts);
    for (const auto& part : parts) {
      part.token == nullptr ? encode_words(view, part.range) : emit_added(part, view);
    }
  }

  /// @param range  of the view, without added tokens
  void encode_words(const View& view, ByteRange range) {
    std::string_view text = range.of(view.text);
    if (text.empty()) return;
    size_t num_added = 0;
    if (tokenizer_.spec_.add_prefix_space && text[0] != ' ') {
      work_.prefixed.assign(1, ' ');
      work_.prefixed += text;
      text = work_.prefixed;
      num_added = 1;
    }
    work_.words.clear();
    tokenizer_.split_words(text, work_.words);
    for (const ByteRange& word : work_.words) {
      const auto pieces = work_.cache.cut(word.of(text));
      if (spans_ != nullptr) add_spans(view, range.begin, word, num_added, pieces);
      for (const WordPiece& piece : pieces) ids_.push_back(piece.id);
    }
  }

  /// @param begin      byte of the view where the words' text begins
  /// @param num_added  spaces before that text; they count as its first character
  void add_spans(const View& view, size_t begin, ByteRange word, size_t num_added,
                 std::span<const WordPiece> pieces) {
    const auto in_view = [&](size_t byte) { return begin + byte - std::min(byte, num_added); };
    size_t at = word.begin;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const size_t end = at + pieces[i].size;
      const auto& spaces = tokenizer_.end_spaces_;
      add_span(span_of(view, {in_view(at), in_view(end - 1) + 1}),
               spaces.empty() ? EndSpaces() : spaces[static_cast<size_t>(pieces[i].id)],
               i == 0 && ids_.size() == num_before_);
      at = end;
    }
  }

  const SpecTokenizer& tokenizer_;
  Workspace& work_;
  std::string_view line_;
  std::vector<int64_t>& ids_;
  std::vector<CodePointSpan>* spans_;
  size_t num_before_;  ///< ids of other lines
  CodePointCounter counter_;
};

/// What the spec makes of a text between added tokens, before it is cut; false where it stays as it
/// is. @param is_first  whether it is the beginning of the line
bool SpecTokenizer::normalise(std::string_view text, bool is_first, bool with_origin,
                              NormalizedText& out) const {
  if (normalizer_) {
    normalizer_->normalize(text, with_origin, out);
  } else if (spec_.nfc) {
    compose(text, with_origin, out);
  } else if (spec_.model == TokenizerSpec::Model::kCharacterBpe) {
    mark_spaces(text, spec_.space_prefix, is_first, with_origin, out);
  } else {
    return false;
  }
  return true;
}

void SpecTokenizer::split_words(std::string_view text, std::vector<ByteRange>& words) const {
  using Pattern = TokenizerSpec::Pattern;
  constexpr int kLlama3Digits = 3;
  if (spec_.model == TokenizerSpec::Model::kWordPiece) {
    split_at_punctuation(text, words);
  } else if (spec_.model == TokenizerSpec::Model::kCharacterBpe || !spec_.use_regex) {
    words.push_back({0, text.size()});
  } else if (spec_.pattern == Pattern::kGpt2) {
    split_by_class(text, words);
  } else {
    split_by_lines(text, spec_.pattern == Pattern::kLlama3 ? kLlama3Digits : 1, words);
  }
}

/// Marks of spaces that a pre-tokenizer makes come after all added tokens.
bool SpecTokenizer::is_found_normalised(const AddedToken& token) const {
  const bool is_marked_late = spec_.model == TokenizerSpec::Model::kCharacterBpe &&
                              spec_.space_prefix != TokenizerSpec::SpacePrefix::kDoubled;
  return token.normalized && !is_marked_late;
}

SpecTokenizer::SpecTokenizer(const TokenizerSpec& spec, std::string_view where,
                             uint64_t fingerprint)
    : spec_(spec),
      fingerprint_(fingerprint),
      model_(make_word_model(spec, where)),
      workspaces_(*model_) {
  if (spec.normalizer) normalizer_.emplace(*spec.normalizer);
  collect_pieces(spec.vocab, spec.added);
  find_specials();
  find_continuing(spec.added);
  raw_added_ = added_tokens(false, where);
  normalized_added_ = added_tokens(true, where);
  spec_.vocab = {};
  spec_.merges = {};
}

void SpecTokenizer::collect_pieces(const PieceIds& vocab, const std::vector<AddedToken>& added) {
  int64_t largest = vocab.back().second;
  for (const AddedToken& token : added) largest = std::max(largest, token.id);
  pieces_.resize(static_cast<size_t>(largest) + 1);
  is_silent_.resize(pieces_.size());
  for (const auto& [piece, id] : vocab) pieces_[static_cast<size_t>(id)] = piece;
  for (const AddedToken& token : added) {
    pieces_[static_cast<size_t>(token.id)] = token.content;
    is_silent_[static_cast<size_t>(token.id)] = token.special;
  }
  for (size_t id = 0; id < pieces_.size(); ++id) {
    if (!pieces_[id].empty()) ids_[pieces_[id]] = static_cast<int64_t>(id);
    if (spec_.trim_offsets) end_spaces_.push_back(end_spaces(pieces_[id]));
  }
}

int64_t SpecTokenizer::first_of(std::initializer_list<const char*> pieces) const {
  for (const char* piece : pieces) {
    const auto found = ids_.find(piece);
    if (found != ids_.end()) return found->second;
  }
  return -1;
}

void SpecTokenizer::find_specials() {
  specials_ = {.pad = first_of({"[PAD]", "<pad>"}),
               .unk = spec_.unk_token ? first_of({spec_.unk_token->c_str()}) : first_of({"<unk>"}),
               .bos = first_of({"[CLS]", "<s>", "<|endoftext|>", "<|begin_of_text|>"}),
               .eos = first_of({"[SEP]", "</s>", "<|endoftext|>", "<|end_of_text|>", "<|im_end|>"}),
               .mask = first_of({"[MASK]", "<mask>"})};
  bool is_behind = false;
  for (const auto& slot : spec_.sequences.single) {
    if (slot.part == SequenceTemplate::Part::kFirst) {
      is_behind = true;
    } else {
      (is_behind ? specials_.eos : specials_.bos) = slot.id;
    }
  }
  for (const int64_t id : {specials_.pad, specials_.bos, specials_.eos, specials_.mask}) {
    if (id >= 0) is_silent_[static_cast<size_t>(id)] = true;
  }
  if (specials_.unk >= 0) is_silent_[static_cast<size_t>(specials_.unk)] = false;
}

void SpecTokenizer::find_continuing(const std::vector<AddedToken>& added) {
  const bool is_bytes = spec_.model == TokenizerSpec::Model::kByteBpe;
  const bool is_marked = spec_.model == TokenizerSpec::Model::kCharacterBpe;
  for (const std::string& piece : pieces_) {
    if (is_marked) {
      continues_word_.push_back(!piece.starts_with(kWordStart));
      continue;
    }
    const auto bytes = is_bytes ? bytes_of_piece(piece) : std::nullopt;
    const bool begins_with_space =
        bytes && !bytes->empty() && std::string_view(" \t\n\r").find((*bytes)[0]) < 4;
    continues_word_.push_back(is_bytes ? bytes && !begins_with_space
                                       : !spec_.continuing_prefix.empty() &&
                                             piece.starts_with(spec_.continuing_prefix));
  }
  const auto clear = [&](int64_t id) {
    if (id >= 0) continues_word_[static_cast<size_t>(id)] = false;
  };
  for (const AddedToken& token : added) clear(token.id);
  for (const int64_t id :
       {specials_.pad, specials_.unk, specials_.bos, specials_.eos, specials_.mask}) {
    clear(id);
  }
}

AddedTokens SpecTokenizer::added_tokens(bool normalized, std::string_view where) const {
  std::vector<AddedToken> tokens;
  std::vector<std::string> patterns;
  std::unordered_set<std::string> seen;
  for (const AddedToken& token : spec_.added) {
    if (is_found_normalised(token) != normalized) continue;
    NormalizedText pattern{.text = token.content, .origin = {}};
    if (normalized) normalise(token.content, true, false, pattern);
    const bool again = !seen.insert(pattern.text).second;
    if (pattern.text.empty() || again) {
      throw Error(ExitCode::kBadData,
                  std::string(where) + ": added token `" + printable(token.content, 60) +
                      (again ? "` is normalised to the same text as another one"
                             : "` is normalised to nothing"),
                  "set its `normalized` to false");
    }
    tokens.push_back(token);
    patterns.push_back(std::move(pattern.text));
  }
  if (tokens.empty()) return {};
  return {std::move(tokens), patterns};
}

void SpecTokenizer::encode_into(std::string_view line, std::vector<int64_t>& ids,
                                std::vector<CodePointSpan>* spans) const {
  std::string repaired;
  if (!is_valid_utf8(line)) line = repaired = repaired_utf8(line, Repair::kEachByte);
  auto workspace = workspaces_.take();
  Line(*this, *workspace, line, ids, spans).encode();
  workspaces_.give_back(std::move(workspace));
}

std::string SpecTokenizer::piece(int64_t id) const {
  if (id < 0 || id >= size()) id = specials_.unk;
  return id < 0 ? std::string() : pieces_[static_cast<size_t>(id)];
}

std::string SpecTokenizer::decode(const std::vector<int64_t>& ids) const {
  PieceDecoder decoder(spec_);
  for (const int64_t id : ids) {
    const bool is_silent = id >= 0 && id < size() && is_silent_[static_cast<size_t>(id)];
    if (!is_silent) decoder.add(piece(id));
  }
  return decoder.text();
}

}  // namespace

std::shared_ptr<const Tokenizer> make_spec_tokenizer(const TokenizerSpec& spec,
                                                     std::string_view where, uint64_t fingerprint) {
  return std::make_shared<SpecTokenizer>(spec, where, fingerprint);
}

std::shared_ptr<const Tokenizer> make_json_tokenizer(std::string_view bytes,
                                                     std::string_view where) {
  return make_spec_tokenizer(parse_tokenizer_json(bytes, where), where, xxh3_64(bytes));
}

}  // namespace stretto::text
