#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "text/subwords.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using Json = nlohmann::json;

Json slots_json(const std::vector<SequenceTemplate::Slot>& slots, const TokenizerSpec& spec,
                Json& specials) {
  Json list = Json::array();
  for (const SequenceTemplate::Slot& slot : slots) {
    if (slot.part != SequenceTemplate::Part::kSpecial) {
      const char* name = slot.part == SequenceTemplate::Part::kFirst ? "A" : "B";
      list.push_back({{"Sequence", {{"id", name}, {"type_id", slot.segment}}}});
      continue;
    }
    std::string name;
    for (const auto& [piece, id] : spec.vocab) {
      if (id == slot.id) name = piece;
    }
    for (const AddedToken& token : spec.added) {
      if (token.id == slot.id) name = token.content;
    }
    list.push_back({{"SpecialToken", {{"id", name}, {"type_id", slot.segment}}}});
    specials[name] = {
        {"id", name}, {"ids", Json::array({slot.id})}, {"tokens", Json::array({name})}};
  }
  return list;
}

Json byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

Json post_processor_json(const TokenizerSpec& spec) {
  Json parts = Json::array();
  if (spec.trim_offsets) parts.push_back(byte_level_json(*spec.trim_offsets, true, true));
  if (!(spec.sequences == SequenceTemplate{})) {
    Json specials = Json::object();
    Json single = slots_json(spec.sequences.single, spec, specials);
    Json pair = slots_json(spec.sequences.pair, spec, specials);
    parts.push_back({{"type", "TemplateProcessing"},
                     {"single", std::move(single)},
                     {"pair", std::move(pair)},
                     {"special_tokens", std::move(specials)}});
  }
  if (parts.empty()) return nullptr;
  if (parts.size() == 1) return parts[0];
  return {{"type", "Sequence"}, {"processors", std::move(parts)}};
}

Json replacement_json(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json normalizer_json(const TokenizerSpec& spec) {
  if (spec.nfc) return {{"type", "NFC"}};
  if (spec.model == TokenizerSpec::Model::kCharacterBpe &&
      spec.space_prefix == TokenizerSpec::SpacePrefix::kDoubled) {
    Json parts = Json::array();
    parts.push_back({{"type", "Prepend"}, {"prepend", kWordStart}});
    parts.push_back(replacement_json(" ", kWordStart));
    return {{"type", "Sequence"}, {"normalizers", std::move(parts)}};
  }
  if (!spec.normalizer) return nullptr;
  const BertNormalizerOptions& options = *spec.normalizer;
  Json json{{"type", "BertNormalizer"},
            {"clean_text", options.clean_text},
            {"handle_chinese_chars", options.handle_chinese_chars},
            {"strip_accents", nullptr},
            {"lowercase", options.lowercase}};
  if (options.strip_accents) json["strip_accents"] = *options.strip_accents;
  return json;
}

Json metaspace_json(const TokenizerSpec& spec) {
  using Prefix = TokenizerSpec::SpacePrefix;
  if (spec.space_prefix == Prefix::kDoubled) return nullptr;
  const char* scheme = spec.space_prefix == Prefix::kFirst    ? "first"
                       : spec.space_prefix == Prefix::kAlways ? "always"
                                                              : "never";
  return {{"type", "Metaspace"},
          {"replacement", kWordStart},
          {"prepend_scheme", scheme},
          {"split", false}};
}

Json pre_tokenizer_json(const TokenizerSpec& spec) {
  using Model = TokenizerSpec::Model;
  if (spec.model == Model::kWordPiece) return {{"type", "BertPreTokenizer"}};
  if (spec.model == Model::kCharacterBpe) return metaspace_json(spec);
  if (spec.pattern == TokenizerSpec::Pattern::kGpt2) {
    return byte_level_json(spec.add_prefix_space, true, spec.use_regex);
  }
  Json parts = Json::array();
  parts.push_back({{"type", "Split"},
                   {"pattern", {{"Regex", regex_of(spec.pattern)}}},
                   {"behavior", "Isolated"},
                   {"invert", false}});
  parts.push_back(byte_level_json(false, true, false));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

Json marks_decoder_json(const TokenizerSpec& spec) {
  Json parts = Json::array();
  parts.push_back(replacement_json(kWordStart, " "));
  parts.push_back({{"type", "ByteFallback"}});
  parts.push_back({{"type", "Fuse"}});
  if (spec.decoder_strips) {
    parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", std::move(parts)}};
}

Json decoder_json(const TokenizerSpec& spec) {
  switch (spec.decoder) {
    case TokenizerSpec::Decoder::kMarks:
      return marks_decoder_json(spec);
    case TokenizerSpec::Decoder::kWordPiece:
      return {{"type", "WordPiece"},
              {"prefix", spec.decoder_prefix},
              {"cleanup", spec.decoder_cleanup}};
    case TokenizerSpec::Decoder::kBytes:
      return byte_level_json(true, true, true);
    case TokenizerSpec::Decoder::kSpaces:
      break;
  }
  return nullptr;
}

Json model_json(const TokenizerSpec& spec) {
  Json vocab = Json::object();
  for (const auto& [piece, id] : spec.vocab) vocab[piece] = id;
  if (spec.model == TokenizerSpec::Model::kWordPiece) {
    return {{"type", "WordPiece"},
            {"unk_token", spec.unk_token.value_or("")},
            {"continuing_subword_prefix", spec.continuing_prefix},
            {"max_input_chars_per_word", spec.max_word_chars},
            {"vocab", std::move(vocab)}};
  }
  Json merges = Json::array();
  for (const auto& [left, right] : spec.merges) merges.push_back(Json::array({left, right}));
  Json json{{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", spec.fuse_unk},
            {"byte_fallback", spec.byte_fallback},
            {"ignore_merges", spec.ignore_merges},
            {"vocab", std::move(vocab)},
            {"merges", std::move(merges)}};
  if (spec.unk_token) json["unk_token"] = *spec.unk_token;
  return json;
}

}  // namespace

std::string regex_of(TokenizerSpec::Pattern pattern) {
  constexpr const char *kBefore = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
                       *kBehind = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  switch (pattern) {
    case TokenizerSpec::Pattern::kLlama3:
      return std::string(kBefore) + R"(\p{N}{1,3})" + kBehind;
    case TokenizerSpec::Pattern::kQwen2:
      return std::string(kBefore) + R"(\p{N})" + kBehind;
    case TokenizerSpec::Pattern::kGpt2:
      break;
  }
  return "";
}

std::string write_tokenizer_json(const TokenizerSpec& spec) {
  Json added = Json::array();
  for (const AddedToken& token : spec.added) {
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  const Json json{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", std::move(added)},
                  {"normalizer", normalizer_json(spec)},
                  {"pre_tokenizer", pre_tokenizer_json(spec)},
                  {"post_processor", post_processor_json(spec)},
                  {"decoder", decoder_json(spec)},
                  {"model", model_json(spec)}};
  return json.dump(1) + "\n";
}

}  // namespace stretto::text
