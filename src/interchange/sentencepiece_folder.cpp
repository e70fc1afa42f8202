#include "interchange/sentencepiece_folder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/allowance.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "interchange/added_tokens.h"
#include "interchange/config_reader.h"
#include "interchange/special_tokens.h"
#include "text/sequence_template.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using text::TokenizerSpec;
using Part = text::SequenceTemplate::Part;
using Slots = std::vector<text::SequenceTemplate::Slot>;

constexpr size_t kMaxModelBytes = size_t{128} << 20;

/// A special token of LlamaTokenizer, by its key in tokenizer_config.json.
struct SpecialKey {
  const char *key, *usual;
};
constexpr SpecialKey kUnknown{"unk_token", "<unk>"}, kBegin{"bos_token", "<s>"},
    kEnd{"eos_token", "</s>"};

bool is_llama_class(const TokenizerNotes& notes) {
  const std::string name = notes.config ? notes.config->text("tokenizer_class", "") : "";
  return name.empty() || name == "LlamaTokenizer" || name == "LlamaTokenizerFast";
}

bool flag_in(const TokenizerNotes& notes, const char* key, bool fallback) {
  return notes.config ? notes.config->flag(key, fallback) : fallback;
}

/// Empty where a file says that there is none.
std::string name_of(const TokenizerNotes& notes, const SpecialKey& special) {
  for (const auto* file : {&notes.config, &notes.map}) {
    if (!*file || !(*file)->json().contains(special.key)) continue;
    return named_token(**file, special.key);
  }
  return special.usual;
}

/// Special tokens of the vocabulary are looked for in the text.
void add_specials(const TokenizerNotes& notes, TokenizerSpec& spec) {
  for (const auto& special : {kUnknown, kBegin, kEnd}) {
    const std::string name = name_of(notes, special);
    const auto id = id_of_token(spec, name);
    const bool is_there = std::any_of(spec.added.begin(), spec.added.end(),
                                      [&](const auto& added) { return added.content == name; });
    if (!id || is_there) continue;
    spec.added.push_back({.content = name, .id = *id, .normalized = false, .special = true});
  }
}

/// Marks of spaces in front of texts, and the way back.
void take_space_prefix(const TokenizerNotes& notes, TokenizerSpec& spec) {
  using Prefix = TokenizerSpec::SpacePrefix;
  spec.decoder_strips = flag_in(notes, "add_prefix_space", true);
  if (!spec.decoder_strips) {
    spec.space_prefix = Prefix::kNever;
  } else {
    spec.space_prefix = flag_in(notes, "legacy", true) ? Prefix::kDoubled : Prefix::kFirst;
  }
}

/// @param begin  the id in front of each text, or -1
/// @param end    the id behind each text, or -1
text::SequenceTemplate template_around(int64_t begin, int64_t end) {
  const auto add = [&](Slots& slots, Part part, int64_t segment) {
    if (begin >= 0) slots.push_back({.part = Part::kSpecial, .id = begin, .segment = segment});
    slots.push_back({.part = part, .segment = segment});
    if (end >= 0) slots.push_back({.part = Part::kSpecial, .id = end, .segment = segment});
  };
  text::SequenceTemplate made{.single = {}, .pair = {}};
  add(made.single, Part::kFirst, 0);
  add(made.pair, Part::kFirst, 0);
  add(made.pair, Part::kSecond, 1);
  return made;
}

/// The id of a token that stands around each text.
int64_t required_id(const TokenizerNotes& notes, const TokenizerSpec& spec,
                    const SpecialKey& special, const fs::path& path) {
  const std::string name = name_of(notes, special);
  if (const auto id = id_of_token(spec, name)) return *id;
  throw Error(ExitCode::kBadData,
              path.string() + ": the vocabulary has no `" + printable(name, 60) + "`, the " +
                  special.key + " around each text",
              "name a token of the model as `" + std::string(special.key) +
                  "` in tokenizer_config.json, or set `add_bos_token` and `add_eos_token` to "
                  "false there");
}

}  // namespace

TokenizerSpec read_sentencepiece_folder(const fs::path& folder) {
  const fs::path path = folder / "tokenizer.model";
  Allowance allowance(folder.string());
  const TokenizerNotes notes = read_tokenizer_notes(folder, /*with_added=*/true, allowance);
  if (!is_llama_class(notes)) {
    notes.config->refuse("tokenizer_class",
                         "is `" + printable(notes.config->text("tokenizer_class", ""), 60) +
                             "`, and the folder has a tokenizer.model alone",
                         "LlamaTokenizer is known. Of another class transformers makes a "
                         "tokenizer.json: AutoTokenizer.from_pretrained(FOLDER)."
                         "save_pretrained(FOLDER)");
  }
  auto spec =
      text::parse_sentencepiece_bpe(read_file(path, kMaxModelBytes), path.string(), allowance);
  take_space_prefix(notes, spec);
  add_specials(notes, spec);
  take_added_tokens(notes, path, spec, allowance);
  spec.sequences = template_around(
      flag_in(notes, "add_bos_token", true) ? required_id(notes, spec, kBegin, path) : -1,
      flag_in(notes, "add_eos_token", false) ? required_id(notes, spec, kEnd, path) : -1);
  return spec;
}

}  // namespace stretto::interchange
