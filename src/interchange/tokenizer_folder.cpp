#include "interchange/tokenizer_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "interchange/added_tokens.h"
#include "interchange/config_reader.h"
#include "interchange/special_tokens.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using text::PretrainedKind;
using text::TokenizerSpec;

constexpr size_t kMaxTokenizerFileBytes = size_t{128} << 20;

/// What tokenizer_config.json says; nothing where it does not.
struct TokenizerSettings {
  std::optional<bool> lowercase, strip_accents, chinese_chars, add_prefix_space;
};

std::optional<bool> flag_of(const ConfigReader& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  return config.flag(key, false);
}

TokenizerSettings read_settings(const std::optional<ConfigReader>& config) {
  if (!config) return {};
  return {.lowercase = flag_of(*config, "do_lower_case"),
          .strip_accents = flag_of(*config, "strip_accents"),
          .chinese_chars = flag_of(*config, "tokenize_chinese_chars"),
          .add_prefix_space = flag_of(*config, "add_prefix_space")};
}

// The limits of the calls for which the file was saved are no part of a tokenizer.
TokenizerSpec read_json_tokenizer(const fs::path& path, Allowance& allowance) {
  return text::parse_tokenizer_json(read_file(path, kMaxTokenizerFileBytes), path.string(),
                                    allowance);
}

TokenizerSpec read_wordpiece(const fs::path& path, const TokenizerSettings& settings,
                             Allowance& allowance) {
  auto spec = text::parse_vocab_txt(read_file(path, kMaxTokenizerFileBytes), path.string(),
                                    settings.lowercase, allowance);
  if (settings.strip_accents) spec.normalizer->strip_accents = settings.strip_accents;
  if (settings.chinese_chars) spec.normalizer->handle_chinese_chars = *settings.chinese_chars;
  return spec;
}

/// The kind that the tokens of a spec are of: another model's vocab.txt is BERT's, and a vocab.json
/// that the model does not expect has texts that stand alone (null).
const PretrainedKind* kind_of(const TokenizerSpec& spec, const PretrainedKind& expected) {
  if (spec.model == expected.model) return &expected;
  return spec.model == TokenizerSpec::Model::kWordPiece ? &text::kBertKind : nullptr;
}

TokenizerSpec read_byte_bpe(const fs::path& folder, const TokenizerSettings& settings,
                            const PretrainedKind& expected, Allowance& allowance) {
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt";
  if (!fs::exists(merges)) {
    throw Error(ExitCode::kUsage, vocab.string() + ": there is no merges.txt beside it",
                "copy the folder again, with all of its files");
  }
  auto spec = text::parse_vocab_json(read_file(vocab, kMaxTokenizerFileBytes), vocab.string(),
                                     read_file(merges, kMaxTokenizerFileBytes), merges.string(),
                                     settings.add_prefix_space.value_or(false), allowance);
  if (const auto* kind = kind_of(spec, expected)) {
    text::make_pretrained(spec, *kind);
    if (kind->trims_offsets) spec.trim_offsets = spec.add_prefix_space;
  }
  return spec;
}

[[noreturn]] void disagree(const fs::path& one, const fs::path& other, const std::string& what) {
  throw Error(ExitCode::kBadData,
              one.string() + " and " + other.filename().string() + " disagree: " + what,
              "remove the one that the weights were not trained with");
}

void require_same_pieces(const TokenizerSpec& a, const fs::path& a_path, const TokenizerSpec& b,
                         const fs::path& b_path) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (const auto& [piece, id] : a.vocab) ids.emplace(piece, id);
  for (const auto& [piece, id] : b.vocab) {
    const auto found = ids.find(piece);
    if (found != ids.end() && found->second == id) continue;
    disagree(a_path, b_path, "`" + printable(piece, 60) + "` is not the same piece");
  }
  if (a.vocab.size() != b.vocab.size()) {
    disagree(a_path, b_path,
             counted(static_cast<int64_t>(a.vocab.size()), "piece") + ", and " +
                 with_thousands(static_cast<int64_t>(b.vocab.size())));
  }
  if (a.merges != b.merges) disagree(a_path, b_path, "their merges");
}

/// tokenizer_config.json wins in transformers, so that tokenizer.json must say the same.
void require_same_settings(const TokenizerSpec& spec, const fs::path& path,
                           const TokenizerSettings& settings) {
  const auto compare = [&](const char* key, const std::optional<bool>& stated, bool own,
                           const std::string& what) {
    if (!stated || *stated == own) return;
    const std::string values =
        *stated ? " = true, tokenizer.json: false)" : " = false, tokenizer.json: true)";
    disagree(path, path.parent_path() / "tokenizer_config.json", what + " (" + key + values);
  };
  if (spec.normalizer) {
    const auto& own = *spec.normalizer;
    compare("do_lower_case", settings.lowercase, own.lowercase,
            "one of them makes text lower case");
    compare("strip_accents", settings.strip_accents, own.strip_accents.value_or(own.lowercase),
            "one of them takes accents off");
    compare("tokenize_chinese_chars", settings.chinese_chars, own.handle_chinese_chars,
            "one of them puts spaces around ideographs");
  }
  if (spec.model == TokenizerSpec::Model::kByteBpe) {
    compare("add_prefix_space", settings.add_prefix_space, spec.add_prefix_space,
            "one of them puts a space in front of a text");
  }
}

/// @param path  what the tokenizer was read from
void require_same_specials(const TokenizerSpec& spec, const fs::path& path,
                           const TokenizerNotes& notes) {
  if (!notes.config && !notes.map) return;
  const SpecialTokens specials(spec, path);
  for (const auto* names : {&notes.config, &notes.map}) {
    if (*names) specials.require_same(**names);
  }
}

/// A tokenizer.json has all tokens itself, and the other files repeat some of them.
void add_tokens(const TokenizerNotes& notes, const fs::path& path, const PretrainedKind& expected,
                TokenizerSpec& spec, Allowance& allowance) {
  take_added_tokens(notes, path, spec, allowance);
  if (const auto* kind = kind_of(spec, expected)) text::set_sequences(spec, *kind);
}

/// Without a tokenizer.json the tokens around a text are known by their names alone.
void require_surrounding_tokens(const TokenizerSpec& spec, const fs::path& path,
                                const PretrainedKind& expected) {
  const auto* kind = kind_of(spec, expected);
  if (kind == nullptr) return;
  std::vector<std::string> missing;
  for (const auto& token : text::tokens_around_text(*kind)) {
    const bool is_known = std::any_of(spec.added.begin(), spec.added.end(),
                                      [&](const auto& added) { return added.content == token; });
    if (!is_known) missing.push_back("`" + token + "`");
  }
  if (missing.empty()) return;
  throw Error(ExitCode::kBadData,
              path.string() + ": has no " + join(missing, " and no ") +
                  ", and the model expects `" + text::shown_template(*kind) + "`",
              "put all files of its tokenizer into the folder: tokenizer.json says what stands "
              "around a text, and added_tokens.json has pieces that are not in the vocabulary");
}

/// The special tokens by the names of transformers.
nlohmann::ordered_json special_names(const TokenizerSpec& spec) {
  const auto tokenizer = text::make_spec_tokenizer(spec, "tokenizer", 0);
  const auto ids = tokenizer->specials();
  auto names = nlohmann::ordered_json::object();
  const auto add = [&](const char* key, int64_t id) {
    if (id >= 0) names[key] = tokenizer->piece(id);
  };
  add("unk_token", ids.unk);
  add("cls_token", ids.bos);
  add("bos_token", ids.bos);
  add("sep_token", ids.eos);
  add("eos_token", ids.eos);
  add("pad_token", ids.pad);
  add("mask_token", ids.mask);
  return names;
}

bool has_segments(const TokenizerSpec& spec) {
  return std::any_of(spec.sequences.pair.begin(), spec.sequences.pair.end(),
                     [](const auto& slot) { return slot.segment > 0; });
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

TokenizerSpec read_tokenizer_folder(const fs::path& folder, const PretrainedKind& expected) {
  const fs::path json = folder / "tokenizer.json", vocab = folder / "vocab.txt",
                 bytes = folder / "vocab.json";
  const bool has_json = fs::exists(json);
  Allowance allowance(folder.string());
  const TokenizerNotes notes = read_tokenizer_notes(folder, /*with_added=*/!has_json, allowance);
  const TokenizerSettings settings = read_settings(notes.config);
  std::optional<TokenizerSpec> spec;
  if (has_json) {
    spec = read_json_tokenizer(json, allowance);
    require_same_settings(*spec, json, settings);
  }
  const auto take = [&](const auto& read, const fs::path& path) {
    const uint64_t before = allowance.taken();
    TokenizerSpec other = read();
    if (!spec) {
      spec = std::move(other);
      return;
    }
    require_same_pieces(*spec, json, other, path);
    allowance.give_back(allowance.taken() - before);  // it is compared and forgotten
  };
  if (fs::exists(vocab) && fs::exists(bytes)) disagree(vocab, bytes, "they are of two kinds");
  if (fs::exists(vocab)) {
    take([&] { return read_wordpiece(vocab, settings, allowance); }, vocab);
  }
  if (fs::exists(bytes)) {
    take([&] { return read_byte_bpe(folder, settings, expected, allowance); }, bytes);
  }
  if (!spec) {
    throw Error(
        ExitCode::kUsage,
        folder.string() + ": no tokenizer: neither tokenizer.json nor vocab.txt nor vocab.json",
        "copy the files of the tokenizer into the folder");
  }
  const fs::path& path = has_json ? json : fs::exists(vocab) ? vocab : bytes;
  if (!has_json) add_tokens(notes, path, expected, *spec, allowance);
  require_same_specials(*spec, path, notes);
  if (!has_json) require_surrounding_tokens(*spec, path, expected);
  return *spec;
}

int64_t stated_max_length(const fs::path& folder) {
  Allowance allowance((folder / "tokenizer_config.json").string());
  const auto config = find_config_file(folder / "tokenizer_config.json", kMaxNotesBytes, allowance);
  if (!config || !config->has("model_max_length")) return 0;
  const auto& length = config->json().at("model_max_length");
  const bool fits = length.is_number_unsigned() && length.get<uint64_t>() <= uint64_t{INT64_MAX};
  return fits ? length.get<int64_t>() : 0;
}

TokenizerSpec without_segments(TokenizerSpec spec) {
  for (auto* slots : {&spec.sequences.single, &spec.sequences.pair}) {
    for (auto& slot : *slots) slot.segment = 0;
  }
  return spec;
}

TokenizerSpec exported_tokenizer(const std::map<std::string, std::string>& assets,
                                 const std::string& run) {
  constexpr const char* kFile = "tokenizer.json";
  const auto found = assets.find(kFile);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage,
                run +
                    ": its tokenizer is a SentencePiece model, or a list of characters or words, "
                    "and no tokenizer.json",
                "models of WordPiece and of byte-level BPE are exported");
  }
  return text::parse_tokenizer_json(found->second, kFile);
}

std::map<std::string, std::string> tokenizer_files(const TokenizerSpec& given, int64_t max_tokens,
                                                   int64_t num_segments) {
  const TokenizerSpec spec = num_segments > 1 ? given : without_segments(given);
  const auto specials = special_names(spec);
  auto config = specials;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["model_max_length"] = max_tokens;
  config["model_input_names"] =
      has_segments(spec) ? std::vector<std::string>{"input_ids", "token_type_ids", "attention_mask"}
                         : std::vector<std::string>{"input_ids", "attention_mask"};
  if (spec.normalizer) config["do_lower_case"] = spec.normalizer->lowercase;
  std::map<std::string, std::string> files{{"tokenizer.json", text::write_tokenizer_json(spec)},
                                           {"tokenizer_config.json", json_text(config)},
                                           {"special_tokens_map.json", json_text(specials)}};
  if (spec.model == TokenizerSpec::Model::kWordPiece) {
    std::string& vocab = files["vocab.txt"];
    for (const auto& [piece, id] : spec.vocab) vocab += piece + "\n";
  } else if (spec.model == TokenizerSpec::Model::kByteBpe && !spec.nfc &&
             spec.pattern == TokenizerSpec::Pattern::kGpt2) {
    // No two pieces are equal; looking for each among the others would take quadratic time.
    nlohmann::ordered_json::object_t vocab;
    for (const auto& [piece, id] : spec.vocab) vocab.emplace_back(piece, id);
    files["vocab.json"] = nlohmann::ordered_json(std::move(vocab)).dump() + "\n";
    std::string& merges = files["merges.txt"];
    merges = "#version: 0.2\n";
    for (const auto& [left, right] : spec.merges) merges += left + " " + right + "\n";
  }
  return files;
}

}  // namespace stretto::interchange
