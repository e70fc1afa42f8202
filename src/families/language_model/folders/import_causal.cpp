#include "families/language_model/folders/import_causal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/name_pattern.h"
#include "families/language_model/folders/causal_begin.h"
#include "interchange/config_reader.h"
#include "interchange/folder_tensors.h"
#include "interchange/model_folders.h"
#include "interchange/sentencepiece_folder.h"
#include "interchange/tokenizer_folder.h"
#include "text/pretrained_kind.h"
#include "text/text_tokenizer_options.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

/// A folder without a tokenizer.json has what its class began with: GPT-2 and Qwen vocab.json and
/// merges.txt, which say no pattern, Llama and Mistral a SentencePiece model.
text::TokenizerSpec read_causal_tokenizer(const fs::path& folder, const CausalClass& its) {
  const bool has_json = fs::exists(folder / "tokenizer.json");
  const bool is_qwen = &its == &kQwen2 || &its == &kQwen3;
  if (has_json || &its == &kGpt2 || (is_qwen && fs::exists(folder / "vocab.json"))) {
    auto spec = read_tokenizer_folder(folder, text::kGpt2Kind);
    if (!has_json && is_qwen) {
      spec.nfc = true;
      spec.pattern = text::TokenizerSpec::Pattern::kQwen2;
    }
    set_causal_begin(folder, its, spec);
    return spec;
  }
  if (fs::exists(folder / "tokenizer.model")) return read_sentencepiece_folder(folder);
  throw Error(ExitCode::kUsage,
              folder.string() + ": no tokenizer: neither tokenizer.json nor tokenizer.model" +
                  (is_qwen ? " nor vocab.json" : ""),
              "copy the files of the tokenizer into the folder");
}

void take_causal_tokenizer(ImportedCausal& model, const fs::path& folder) {
  const auto spec = without_segments(read_causal_tokenizer(folder, *model.description.its));
  const std::string bytes = text::write_tokenizer_json(spec);
  model.tokenizer = text::make_json_tokenizer(bytes, (folder / "tokenizer").string());
  model.num_pieces = model.tokenizer->size();
  model.assets["tokenizer.json"] = bytes;
  if (model.tokenizer->specials().eos >= 0) return;
  throw Error(
      ExitCode::kBadData, folder.string() + ": no token of the tokenizer ends a text",
      "</s>, <|endoftext|>, <|end_of_text|> and <|im_end|> are known: add one of them as a special "
      "token");
}

/// Ids of `eos_token_id`, a number or a list of some.
std::vector<int64_t> causal_end_ids(const ConfigReader& config) {
  if (!config.has("eos_token_id")) return {};
  const auto& stated = config.json().at("eos_token_id");
  const auto list = stated.is_array() ? stated : nlohmann::json::array({stated});
  std::vector<int64_t> ids;
  for (const auto& id : list) {
    if (!id.is_number_integer()) {
      config.refuse("eos_token_id", "is neither a whole number nor a list of some");
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

void take_causal_ends(ImportedCausal& model, const fs::path& folder) {
  const fs::path path = folder / "generation_config.json";
  std::vector<int64_t> ids;
  if (fs::exists(path)) ids = causal_end_ids(read_config_file(path, kMaxConfigBytes));
  if (ids.empty()) ids = causal_end_ids(read_folder_config(folder));
  for (const int64_t id : ids) {
    const bool is_known = id >= 0 && id < model.tokenizer->size();
    if (!is_known || id == model.tokenizer->specials().eos) continue;
    const std::string token = model.tokenizer->piece(id);
    if (std::ranges::find(model.end_tokens, token) == model.end_tokens.end()) {
      model.end_tokens.push_back(token);
    }
  }
}

bool has_causal_prefix(const TensorsByName& theirs, std::string_view prefix) {
  return std::any_of(theirs.begin(), theirs.end(),
                     [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

void take_causal_tensors(ImportedCausal& model, const fs::path& folder,
                         const ImportOptions& options) {
  const CausalClass& its = *model.description.its;
  const TensorsByName theirs = by_modern_name(model.files->tensors(), folder);
  model.names = causal_names(model.description, has_causal_prefix(theirs, its.prefix));
  auto found = joined(theirs, model.names, 0, folder.string());
  model.tensors = found.list.tensors;
  model.missing = found.missing;
  model.own = std::make_shared<TensorList>(std::move(found.list));
  std::set<std::string> known(found.taken.begin(), found.taken.end());
  require_equal_copies(theirs, causal_copies(model.description),
                       {.ours = model.tensors, .names = model.names}, folder, known);
  NameMismatches mismatches{
      .model_class = model.model_class, .not_found = found.not_found, .extra = {}};
  for (const auto& [name, tensor] : theirs) {
    if (known.contains(name)) continue;
    const bool unread = matches_any(its.unread, name);
    (unread || options.ignore_extra ? model.left_out : mismatches.extra).push_back(name);
  }
  require_names(mismatches, options, folder, "");
}

void fit_causal_tables(ImportedCausal& model, const fs::path& folder, bool ignores_extra) {
  VocabularySize size{.ids = model.tokenizer->size(),
                      .stated = model.description.vocab_size,
                      .multiple = text::TextTokenizerOptions().vocab_multiple,
                      .ignores_extra = ignores_extra};
  for (TensorView& tensor : model.tensors) {
    if (!is_causal_table(tensor.name) || tensor.shape.empty()) continue;
    size.table = name_in_folder(model.names, tensor.name);
    model.rows_left_out = std::max(model.rows_left_out, fit_rows(tensor, size, *model.own, folder));
  }
}

}  // namespace

ImportedCausal import_causal(const fs::path& folder, const ImportOptions& options) {
  if (options.encoder_only) {
    throw Error(ExitCode::kUsage, folder.string() + ": --encoder-only, but it is a language model",
                "leave the option out: a language model has no encoder");
  }
  ImportedCausal model;
  model.description = read_causal_config(read_folder_config(folder));
  model.model_class = model.description.its->name;
  take_causal_tokenizer(model, folder);
  take_causal_ends(model, folder);
  model.files = std::make_shared<const store::WeightFiles>(folder);
  take_causal_tensors(model, folder, options);
  fit_causal_tables(model, folder, options.ignore_extra);
  return model;
}

}  // namespace stretto::interchange
