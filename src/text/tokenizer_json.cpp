#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "text/json_fields.h"
#include "text/spec_parts.h"
#include "text/subwords.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using Slot = SequenceTemplate::Slot;
using Slots = std::vector<Slot>;

std::string type_of(JsonFields& fields) {
  return fields.get("type").text();
}

void refuse_type(JsonFields& fields, const std::string& supported) {
  fields.get("type").refuse("`" + printable(fields.get("type").text(), 60) + "` is not supported",
                            "Stretto has " + supported);
}

void read_merges(const JsonValue& value, TokenizerSpec& spec, Allowance& allowance) {
  for (size_t i = 0; i < value.size(); ++i) {
    const JsonValue merge = value.at(i);
    if (!merge.is_list()) {
      if (merge.text().starts_with("#version")) continue;
      spec.merges.push_back(parse_merge(merge.text(), merge.place()));
    } else if (merge.size() == 2) {
      spec.merges.emplace_back(merge.at(0).text(), merge.at(1).text());
    } else {
      merge.refuse("a merge has two pieces", kSaveAgain);
    }
    take_merge(spec.merges.back(), merge.place(), allowance);
  }
}

void require_empty(JsonFields& fields, const char* key) {
  const auto value = fields.find(key);
  if (value && !value->text().empty())
    value->refuse("this is not supported for bytes", "set it to null");
}

bool is_metaspace(const nlohmann::json& part) {
  const auto type = part.is_object() ? part.find("type") : part.end();
  return type != part.end() && *type == "Metaspace";
}

/// @param pre_tokenizer  of the file: bytes have one of their own
void read_bpe(JsonFields& fields, const JsonValue& pre_tokenizer, TokenizerSpec& spec,
              Allowance& allowance) {
  const bool of_characters = pre_tokenizer.is_null() || is_metaspace(pre_tokenizer.json());
  spec.model = of_characters ? TokenizerSpec::Model::kCharacterBpe : TokenizerSpec::Model::kByteBpe;
  if (const auto unk = fields.find("unk_token"); unk && !unk->text().empty())
    spec.unk_token = unk->text();
  if (const auto dropout = fields.find("dropout"); dropout && dropout->real() != 0) {
    dropout->refuse("BPE-dropout is not supported", "set it to null");
  }
  if (const auto fallback = fields.find("byte_fallback"); fallback && fallback->flag()) {
    if (!of_characters) {
      fallback->refuse("bytes have pieces already, by the pre-tokenizer", "set it to false");
    }
    spec.byte_fallback = true;
  }
  require_empty(fields, "continuing_subword_prefix");
  require_empty(fields, "end_of_word_suffix");
  spec.fuse_unk = fields.flag("fuse_unk", false);
  spec.ignore_merges = fields.flag("ignore_merges", false);
  read_merges(fields.get("merges"), spec, allowance);
}

void read_wordpiece(JsonFields& fields, TokenizerSpec& spec) {
  spec.model = TokenizerSpec::Model::kWordPiece;
  spec.unk_token = fields.get("unk_token").text();
  spec.continuing_prefix = fields.get("continuing_subword_prefix").text();
  spec.max_word_chars = fields.get("max_input_chars_per_word").number(INT32_MAX);
}

void read_model(const JsonValue& value, const JsonValue& pre_tokenizer, TokenizerSpec& spec,
                Allowance& allowance) {
  JsonFields fields(value);
  spec.vocab = read_piece_ids(fields.get("vocab"), allowance);
  // Files of early versions have no type.
  const auto type = fields.find("type");
  const bool is_bpe = type ? type->text() == "BPE" : value.json().contains("merges");
  if (type && !is_bpe && type->text() != "WordPiece") {
    refuse_type(fields, "WordPiece and BPE; give a SentencePiece model for Unigram");
  }
  is_bpe ? read_bpe(fields, pre_tokenizer, spec, allowance) : read_wordpiece(fields, spec);
  fields.done();
  if (!spec.unk_token) return;
  const bool known = std::any_of(spec.vocab.begin(), spec.vocab.end(),
                                 [&](const auto& piece) { return piece.first == *spec.unk_token; });
  if (!known) {
    fields.get("unk_token")
        .refuse("`" + printable(*spec.unk_token, 60) + "` is not in model.vocab",
                "add it to model.vocab, or name a token that is there");
  }
}

/// A part that replaces one text by another one.
void require_replacement(const JsonValue& value, std::string_view from, std::string_view to) {
  JsonFields fields(value);
  if (type_of(fields) != "Replace") refuse_type(fields, "Replace here");
  JsonFields pattern(fields.get("pattern"));
  const JsonValue what = pattern.get("String"), by = fields.get("content");
  if (what.text() != from) what.refuse("expected `" + std::string(from) + "`", kSaveAgain);
  if (by.text() != to) by.refuse("expected `" + std::string(to) + "`", kSaveAgain);
  pattern.done();
  fields.done();
}

/// Llama's: a mark in front of each text, unless add_prefix_space is false, and marks for spaces.
void read_marking(const JsonValue& parts, TokenizerSpec& spec) {
  const std::string mark(kWordStart);
  if (parts.size() == 1) return require_replacement(parts.at(0), " ", mark);
  if (parts.size() != 2) parts.refuse("expected Prepend and Replace", kSaveAgain);
  JsonFields fields(parts.at(0));
  if (type_of(fields) != "Prepend") refuse_type(fields, "Prepend here");
  const JsonValue prepended = fields.get("prepend");
  if (prepended.text() != mark) prepended.refuse("expected `" + mark + "`", kSaveAgain);
  fields.done();
  require_replacement(parts.at(1), " ", mark);
  spec.space_prefix = TokenizerSpec::SpacePrefix::kDoubled;
}

/// What stands before BPE: composition before bytes, marks before characters.
void read_bpe_normalizer(JsonFields& fields, TokenizerSpec& spec) {
  const std::string type = type_of(fields);
  const bool of_characters = spec.model == TokenizerSpec::Model::kCharacterBpe;
  if (!of_characters && type == "NFC") {
    spec.nfc = true;
  } else if (of_characters && type == "Sequence") {
    read_marking(fields.get("normalizers"), spec);
  } else {
    refuse_type(fields, of_characters ? "Prepend and Replace for BPE of characters, or null"
                                      : "NFC for byte-level BPE, or null");
  }
  fields.done();
}

void read_normalizer(const JsonValue& value, TokenizerSpec& spec) {
  JsonFields fields(value);
  const bool of_bytes = spec.model == TokenizerSpec::Model::kByteBpe;
  if (spec.model == TokenizerSpec::Model::kCharacterBpe ||
      (of_bytes && type_of(fields) != "BertNormalizer")) {
    return read_bpe_normalizer(fields, spec);
  }
  if (type_of(fields) != "BertNormalizer") refuse_type(fields, "BertNormalizer, or null");
  BertNormalizerOptions options{.clean_text = fields.get("clean_text").flag(),
                                .handle_chinese_chars = fields.get("handle_chinese_chars").flag(),
                                .strip_accents = {},
                                .lowercase = fields.get("lowercase").flag()};
  if (const auto strip = fields.find("strip_accents")) options.strip_accents = strip->flag();
  fields.done();
  spec.normalizer = options;
}

/// Marks of spaces that are made after the normalizer: Llama's later form.
/// @param is_marked  whether the normalizer has made them
void read_metaspace(const JsonValue& value, bool is_marked, TokenizerSpec& spec) {
  using Prefix = TokenizerSpec::SpacePrefix;
  if (value.is_null()) {
    if (is_marked) return;
    value.refuse("BPE without a pre-tokenizer needs Prepend and Replace as its normalizer",
                 kSaveAgain);
  }
  JsonFields fields(value);
  type_of(fields);
  const JsonValue mark = fields.get("replacement"), scheme = fields.get("prepend_scheme");
  if (mark.text() != kWordStart) mark.refuse("expected U+2581", kSaveAgain);
  if (fields.flag("split", true)) {
    fields.get("split").refuse("words that are cut apart are not supported", "set it to false");
  }
  if (is_marked) {
    value.refuse("spaces are marked twice", "keep the normalizer or the pre-tokenizer");
  }
  if (scheme.text() == "first") {
    spec.space_prefix = Prefix::kFirst;
  } else if (scheme.text() == "always") {
    spec.space_prefix = Prefix::kAlways;
  } else if (scheme.text() != "never") {
    scheme.refuse("expected first, always or never", kSaveAgain);
  }
  fields.done();
}

void read_split(const JsonValue& value, TokenizerSpec& spec) {
  JsonFields fields(value);
  if (type_of(fields) != "Split") refuse_type(fields, "Split here");
  JsonFields pattern(fields.get("pattern"));
  const JsonValue regex = pattern.get("Regex");
  pattern.done();
  const JsonValue behavior = fields.get("behavior");
  if (behavior.text() != "Isolated") behavior.refuse("expected Isolated", kSaveAgain);
  if (fields.flag("invert", false)) fields.get("invert").refuse("expected false", kSaveAgain);
  fields.done();
  for (const auto known : {TokenizerSpec::Pattern::kLlama3, TokenizerSpec::Pattern::kQwen2}) {
    if (regex.text() != regex_of(known)) continue;
    spec.pattern = known;
    return;
  }
  regex.refuse("this pattern is not known", "those of GPT-2, Llama 3 and Qwen2 are");
}

void read_byte_level(const JsonValue& value, TokenizerSpec& spec) {
  JsonFields fields(value);
  if (type_of(fields) != "ByteLevel") refuse_type(fields, "ByteLevel for BPE of bytes");
  spec.add_prefix_space = fields.get("add_prefix_space").flag();
  fields.flag("trim_offsets", true);  // of the post-processor alone
  spec.use_regex = fields.flag("use_regex", true);
  fields.done();
}

/// Another pattern than GPT-2's, and then bytes.
void read_split_bytes(JsonFields& fields, TokenizerSpec& spec) {
  const JsonValue parts = fields.get("pretokenizers");
  if (parts.size() != 2) parts.refuse("expected Split and ByteLevel", kSaveAgain);
  read_split(parts.at(0), spec);
  read_byte_level(parts.at(1), spec);
  if (spec.use_regex) {
    parts.at(1).refuse("text is split by two patterns", "set use_regex to false");
  }
  spec.use_regex = true;  // the pattern of Split
  if (spec.add_prefix_space) {
    parts.at(1).refuse("add_prefix_space comes after a split", "set it to false");
  }
  fields.done();
}

void read_pre_tokenizer(const JsonValue& value, TokenizerSpec& spec) {
  JsonFields fields(value);
  const bool is_bpe = spec.model == TokenizerSpec::Model::kByteBpe;
  if (is_bpe && type_of(fields) == "Sequence") return read_split_bytes(fields, spec);
  if (is_bpe) return read_byte_level(value, spec);
  if (type_of(fields) != "BertPreTokenizer") refuse_type(fields, "BertPreTokenizer for WordPiece");
  fields.done();
}

// ---- Added tokens and templates

/// The tokens of a spec, whose vocabulary it refers to.
class TokenTable {
 public:
  explicit TokenTable(const TokenizerSpec& spec) {
    for (const auto& [piece, id] : spec.vocab) add(piece, id);
  }
  void add(std::string_view piece, int64_t id) {
    ids_[piece] = id;
    known_.insert(id);
  }
  int64_t id(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }
  bool has(int64_t id) const { return known_.contains(id); }

 private:
  std::unordered_map<std::string_view, int64_t> ids_;
  std::unordered_set<int64_t> known_;
};

AddedToken read_added_token(const JsonValue& value) {
  JsonFields fields(value);
  AddedToken token{.content = fields.get("content").text(),
                   .id = fields.get("id").number(kMaxPieceId),
                   .single_word = fields.get("single_word").flag(),
                   .lstrip = fields.get("lstrip").flag(),
                   .rstrip = fields.get("rstrip").flag(),
                   .normalized = fields.get("normalized").flag(),
                   .special = fields.get("special").flag()};
  fields.done();
  if (token.content.empty()) value.refuse("the content is empty", "remove this token");
  return token;
}

/// A token that the vocabulary lacks gets the next id, as the package gives it.
void read_added_tokens(const JsonValue& value, TokenizerSpec& spec, TokenTable& table,
                       Allowance& allowance) {
  auto next = static_cast<int64_t>(spec.vocab.size());
  std::unordered_set<std::string_view> seen;
  spec.added.reserve(value.size());  // views of them stay
  for (size_t i = 0; i < value.size(); ++i) {
    AddedToken& token = spec.added.emplace_back(read_added_token(value.at(i)));
    take_piece(token.content, value.at(i).place(), allowance);
    if (!seen.insert(token.content).second) {
      value.at(i).refuse("`" + printable(token.content, 60) + "` stands here again",
                         "remove one of the two");
    }
    int64_t id = table.id(token.content);
    if (id < 0) {
      id = next++;
      if (table.has(id))
        value.at(i).refuse("id " + std::to_string(id) + " is another token's", kSaveAgain);
      table.add(token.content, id);
    }
    if (id != token.id) {
      value.at(i).refuse("id " + std::to_string(token.id) + " of `" + printable(token.content, 60) +
                             "` should be " + std::to_string(id),
                         "ids of added tokens go on where model.vocab ends");
    }
  }
}

Slot read_named_special(const JsonValue& value, const TokenTable& table) {
  if (value.size() != 2) value.refuse("expected [token, id]", kSaveAgain);
  value.at(0).text();
  const int64_t id = value.at(1).number(kMaxPieceId);
  if (!table.has(id)) value.at(1).refuse("no token has id " + std::to_string(id), kSaveAgain);
  return {.part = SequenceTemplate::Part::kSpecial, .id = id};
}

Slots read_template_specials(const JsonValue& value, const TokenTable& table, int64_t segment) {
  JsonFields fields(value);
  fields.get("id").text();
  const JsonValue ids = fields.get("ids"), tokens = fields.get("tokens");
  if (ids.size() != tokens.size()) value.refuse("ids and tokens differ in length", kSaveAgain);
  fields.done();
  Slots slots;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.at(i).number(kMaxPieceId);
    if (!table.has(id)) ids.at(i).refuse("no token has id " + std::to_string(id), kSaveAgain);
    slots.push_back({.part = SequenceTemplate::Part::kSpecial, .id = id, .segment = segment});
  }
  return slots;
}

/// A template may name one list of specials as often as it likes.
void require_short_template(const JsonValue& value, size_t num_slots) {
  constexpr size_t kMaxSlots = 256;
  if (num_slots <= kMaxSlots) return;
  value.refuse("more than 256 tokens around a text",
               "give the template that the model was trained with: two to six are usual");
}

Slots read_template(const JsonValue& value, JsonFields& specials, const TokenTable& table) {
  Slots slots;
  for (size_t i = 0; i < value.size(); ++i) {
    require_short_template(value, slots.size());
    JsonFields part(value.at(i));
    const bool is_text = value.at(i).json().contains("Sequence");
    const JsonValue inner = part.get(is_text ? "Sequence" : "SpecialToken");
    part.done();
    JsonFields fields(inner);
    const std::string& name = fields.get("id").text();
    const int64_t segment = fields.get("type_id").number(INT32_MAX);
    fields.done();
    if (!is_text) {
      for (const Slot& slot : read_template_specials(specials.get(name), table, segment))
        slots.push_back(slot);
    } else if (name == "A" || name == "B") {
      slots.push_back(
          {.part = name == "A" ? SequenceTemplate::Part::kFirst : SequenceTemplate::Part::kSecond,
           .segment = segment});
    } else {
      inner.refuse("`" + printable(name, 60) + "` is neither A nor B", kSaveAgain);
    }
  }
  require_short_template(value, slots.size());
  return slots;
}

void require_texts(const JsonValue& place, const Slots& slots, int64_t num_second) {
  const auto count = [&](SequenceTemplate::Part part) {
    return std::count_if(slots.begin(), slots.end(),
                         [&](const Slot& slot) { return slot.part == part; });
  };
  if (count(SequenceTemplate::Part::kFirst) == 1 &&
      count(SequenceTemplate::Part::kSecond) == num_second)
    return;
  place.refuse("each text must stand in it once", "write $A once, and in `pair` $B once too");
}

void read_template_processing(JsonFields& fields, TokenizerSpec& spec, const TokenTable& table) {
  JsonFields specials(fields.get("special_tokens"));
  const JsonValue single = fields.get("single"), pair = fields.get("pair");
  spec.sequences = {.single = read_template(single, specials, table),
                    .pair = read_template(pair, specials, table)};
  require_texts(single, spec.sequences.single, 0);
  require_texts(pair, spec.sequences.pair, 1);
}

void read_bert_processing(JsonFields& fields, TokenizerSpec& spec, const TokenTable& table) {
  const Slot cls = read_named_special(fields.get("cls"), table);
  Slot sep = read_named_special(fields.get("sep"), table);
  const Slot first, second{.part = SequenceTemplate::Part::kSecond, .segment = 1};
  spec.sequences = {.single = {cls, first, sep}, .pair = {cls, first, sep, second}};
  sep.segment = 1;
  spec.sequences.pair.push_back(sep);
}

void read_trimming(JsonFields& fields, TokenizerSpec& spec) {
  const bool add_prefix_space = fields.get("add_prefix_space").flag();
  if (!fields.get("trim_offsets").flag()) return;
  if (spec.trim_offsets)
    fields.get("trim_offsets").refuse("offsets are trimmed twice", "keep one of the two");
  spec.trim_offsets = add_prefix_space;
}

void read_roberta_processing(JsonFields& fields, TokenizerSpec& spec, const TokenTable& table) {
  const Slot cls = read_named_special(fields.get("cls"), table);
  const Slot sep = read_named_special(fields.get("sep"), table);
  const Slot first, second{.part = SequenceTemplate::Part::kSecond};
  spec.sequences = {.single = {cls, first, sep}, .pair = {cls, first, sep, sep, second, sep}};
  read_trimming(fields, spec);
}

void read_post_processor(const JsonValue& value, TokenizerSpec& spec, const TokenTable& table) {
  JsonFields fields(value);
  const std::string type = type_of(fields);
  if (type == "TemplateProcessing") {
    read_template_processing(fields, spec, table);
  } else if (type == "BertProcessing") {
    read_bert_processing(fields, spec, table);
  } else if (type == "RobertaProcessing") {
    read_roberta_processing(fields, spec, table);
  } else if (type == "ByteLevel") {
    read_trimming(fields, spec);
    fields.flag("use_regex", true);
  } else if (type == "Sequence") {
    const JsonValue parts = fields.get("processors");
    for (size_t i = 0; i < parts.size(); ++i) read_post_processor(parts.at(i), spec, table);
  } else {
    refuse_type(fields,
                "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence");
  }
  fields.done();
}

/// Marks to spaces, bytes to text, and perhaps without the first space.
void read_mark_decoders(const JsonValue& parts, TokenizerSpec& spec) {
  constexpr size_t kFewest = 3, kMost = 4;
  if (parts.size() < kFewest || parts.size() > kMost) {
    parts.refuse("expected Replace, ByteFallback, Fuse and perhaps Strip", kSaveAgain);
  }
  require_replacement(parts.at(0), kWordStart, " ");
  const auto require_type = [&](size_t at, const std::string& type) {
    JsonFields fields(parts.at(at));
    if (type_of(fields) != type) refuse_type(fields, type + " here");
    fields.done();
  };
  require_type(1, "ByteFallback");
  require_type(2, "Fuse");
  spec.decoder = TokenizerSpec::Decoder::kMarks;
  spec.decoder_strips = parts.size() == kMost;
  if (!spec.decoder_strips) return;
  JsonFields fields(parts.at(3));
  if (type_of(fields) != "Strip") refuse_type(fields, "Strip here");
  const bool takes_one_space = fields.get("content").text() == " " &&
                               fields.get("start").number(INT32_MAX) == 1 &&
                               fields.get("stop").number(INT32_MAX) == 0;
  if (!takes_one_space) parts.at(3).refuse("expected one space of the start", kSaveAgain);
  fields.done();
}

void read_decoder(const JsonValue& value, TokenizerSpec& spec) {
  JsonFields fields(value);
  const std::string type = type_of(fields);
  if (type == "WordPiece") {
    spec.decoder = TokenizerSpec::Decoder::kWordPiece;
    spec.decoder_prefix = fields.get("prefix").text();
    spec.decoder_cleanup = fields.get("cleanup").flag();
  } else if (type == "ByteLevel") {
    spec.decoder = TokenizerSpec::Decoder::kBytes;
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"})
      fields.flag(key, true);
  } else if (type == "Sequence") {
    read_mark_decoders(fields.get("decoders"), spec);
  } else {
    refuse_type(fields, "WordPiece, ByteLevel and the Sequence of Llama, or null");
  }
  fields.done();
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view bytes, std::string_view where) {
  Allowance allowance{std::string(where)};
  return parse_tokenizer_json(bytes, where, allowance);
}

TokenizerSpec parse_tokenizer_json(std::string_view bytes, std::string_view where,
                                   Allowance& allowance) {
  const uint64_t before = allowance.taken();
  const nlohmann::json json = parse_json(bytes, where, kMaxTokenizerBytes, allowance);
  const uint64_t num_json = allowance.taken() - before;  // free again at the end
  JsonFields fields(JsonValue(json, std::string(where) + ":"));
  if (const auto version = fields.find("version"); version && version->text() != "1.0") {
    version->refuse("expected 1.0", kSaveAgain);
  }
  // How long a text may be is the configuration's, and nothing is padded.
  for (const char* key : {"truncation", "padding"}) fields.find(key);
  TokenizerSpec spec;
  const JsonValue pre_tokenizer = fields.get("pre_tokenizer");
  read_model(fields.get("model"), pre_tokenizer, spec, allowance);
  const auto normalizer = fields.find("normalizer");
  if (normalizer) read_normalizer(*normalizer, spec);
  if (spec.model == TokenizerSpec::Model::kCharacterBpe) {
    read_metaspace(pre_tokenizer, normalizer.has_value(), spec);
  } else {
    read_pre_tokenizer(pre_tokenizer, spec);
  }
  TokenTable table(spec);
  if (const auto value = fields.find("added_tokens")) {
    read_added_tokens(*value, spec, table, allowance);
  }
  if (const auto value = fields.find("post_processor")) read_post_processor(*value, spec, table);
  if (const auto value = fields.find("decoder")) read_decoder(*value, spec);
  if (spec.model == TokenizerSpec::Model::kCharacterBpe &&
      spec.decoder != TokenizerSpec::Decoder::kMarks) {
    fields.object().refuse("BPE of characters needs the decoders Replace, ByteFallback and Fuse",
                           kSaveAgain);
  }
  fields.done();
  allowance.give_back(num_json);
  return spec;
}

}  // namespace stretto::text
