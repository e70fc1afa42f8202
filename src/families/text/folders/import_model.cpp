#include "families/text/folders/import_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "interchange/config_reader.h"
#include "interchange/folder_tensors.h"
#include "interchange/model_folders.h"
#include "interchange/tokenizer_folder.h"
#include "text/encoded_text.h"
#include "text/text_tokenizer_options.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

constexpr int64_t kMostTextTokens = 100'000;  // data.max_text_tokens
constexpr int64_t kFewestTextTokens = 8;

bool has_prefix(const TensorsByName& tensors, std::string_view prefix) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

/// `max_seq_length` of sentence encoders; 0 when the folder does not say it.
int64_t longest_sentence(const fs::path& folder) {
  const fs::path path = folder / "sentence_bert_config.json";
  if (!fs::exists(path)) return 0;
  return read_config_file(path, kMaxSmallTextBytes)
      .integer("max_seq_length", 0, kFewestTextTokens, kMostTextTokens);
}

/// How long a text may be; 0 when the folder says nothing, or more than there are positions.
int64_t longest_text(const fs::path& folder, int64_t positions) {
  const int64_t of_sentences = longest_sentence(folder);
  if (of_sentences > 0) return of_sentences;
  const int64_t of_tokenizer = stated_max_length(folder);
  const bool is_usable = of_tokenizer >= kFewestTextTokens && of_tokenizer <= positions;
  return is_usable ? std::min(of_tokenizer, kMostTextTokens) : 0;
}

int64_t num_specials(const std::vector<text::SequenceTemplate::Slot>& slots) {
  return std::count_if(slots.begin(), slots.end(), [](const auto& slot) {
    return slot.part == text::SequenceTemplate::Part::kSpecial;
  });
}

/// A text keeps a token at least, beside those that the tokenizer puts around it.
void require_room_for_text(const ImportedModel& model, const fs::path& folder) {
  const int64_t positions = model.config.description.model.max_positions;
  const auto sequences = text::template_of(*model.tokenizer);
  const auto require = [&](const auto& slots, const char* around, int64_t texts) {
    const int64_t needed = num_specials(slots) + texts;
    if (needed <= positions) return;
    throw Error(ExitCode::kBadData,
                (folder / "tokenizer.json").string() + ": its template puts " +
                    counted(num_specials(slots), "token") + " around " + around + ", so that " +
                    std::to_string(needed) + " are needed, and the model has " +
                    counted(positions, "position") + " (config.json)",
                "put the tokenizer of these weights into the folder");
  };
  require(sequences.single, "a text", 1);
  require(sequences.pair, "two texts", 2);
}

/// Tables of tokens get the rows of the tokenizer's ids, and rows of zeros up to a round number, as
/// every run has them.
void fit_to_vocabulary(ImportedModel& model, const fs::path& folder, bool ignores_extra) {
  const auto& description = model.config.description;
  VocabularySize size{.ids = model.tokenizer->size(),
                      .stated = description.vocab_size,
                      .multiple = text::TextTokenizerOptions().vocab_multiple,
                      .ignores_extra = ignores_extra};
  for (TensorView& tensor : model.tensors) {
    if (!is_table_of_tokens(tensor.name, description) || tensor.shape.empty()) continue;
    size.table = name_in_folder(model.names, tensor.name);
    model.rows_left_out = fit_rows(tensor, size, *model.own, folder);
  }
}

/// Names that belong to the architecture, but not to this model: a pooler below a head that has no
/// use for it, heads that are left out.
bool is_unread(const std::string& name, const Architecture& architecture,
               const std::set<std::string>& other_names, bool encoder_only, bool prefixed) {
  if (other_names.contains(name)) return true;
  if (encoder_only && prefixed && !name.starts_with(architecture.prefix)) return true;
  return matches_any(architecture.unread, name);
}

std::set<std::string> pooler_names(const Architecture& architecture, bool prefixed) {
  std::set<std::string> names;
  for (const auto& pair :
       expand(architecture.pooler, 0, prefixed ? std::string_view() : architecture.prefix)) {
    names.insert(pair.theirs.begin(), pair.theirs.end());
  }
  return names;
}

void take_tensors(ImportedModel& model, const fs::path& folder, const ImportOptions& options) {
  const Architecture& architecture = *model.config.architecture;
  auto& description = model.config.description;
  const TensorsByName theirs = by_modern_name(model.files->tensors(), folder);
  const bool prefixed = has_prefix(theirs, architecture.prefix);
  const auto poolers = pooler_names(architecture, prefixed);
  // An encoder has a pooler if the folder has one.
  if (description.head == Head::kNone &&
      std::none_of(poolers.begin(), poolers.end(),
                   [&](const std::string& name) { return theirs.contains(name); })) {
    description.model.pooling = "mean";
  }
  model.names = names_of(architecture, description, prefixed);
  const int64_t skipped = description.pad_id + 1;
  auto joined_tensors = joined(theirs, model.names, skipped, folder.string());
  model.tensors = joined_tensors.list.tensors;
  model.missing = joined_tensors.missing;
  std::set<std::string> known(joined_tensors.taken.begin(), joined_tensors.taken.end());
  require_equal_copies(theirs, copies_of(architecture, description),
                       {.ours = model.tensors, .names = model.names}, folder, known);
  model.own = std::make_shared<TensorList>(std::move(joined_tensors.list));
  std::vector<std::string> extra;
  for (const auto& [name, tensor] : theirs) {
    if (known.contains(name)) continue;
    const bool unread = is_unread(name, architecture, poolers, options.encoder_only, prefixed);
    (unread || options.ignore_extra ? model.left_out : extra).push_back(name);
  }
  require_names(
      {.model_class = model.model_class, .not_found = joined_tensors.not_found, .extra = extra},
      options, folder, ", --encoder-only leaves out the head");
}

/// What a class of transformers computes in one way alone: RoBERTa's masked-LM head has GELU,
/// whatever `hidden_act` says.
void require_expressible(const ModelConfig& config, const fs::path& path) {
  const std::string incompatibility = config.architecture->incompatibility(config.description);
  if (incompatibility.empty()) return;
  throw Error(ExitCode::kBadData,
              path.string() + ": " + class_name(*config.architecture, config.description.head) +
                  " computes it otherwise: " + incompatibility,
              "--encoder-only leaves out the head");
}

}  // namespace

ImportedModel import_model(const fs::path& folder, const ImportOptions& options) {
  const fs::path config = folder / "config.json";
  ImportedModel model;
  model.config = read_model_config(read_folder_config(folder), options.encoder_only);
  auto& description = model.config.description;
  model.model_class = class_name(*model.config.architecture, description.head);
  if (description.model.max_positions < kFewestTextTokens) {
    throw Error(ExitCode::kBadData,
                config.string() + ": " + counted(description.model.max_positions, "position") +
                    " are too few for a text",
                "a model needs at least 8");
  }
  auto spec = read_tokenizer_folder(folder, *model.config.architecture->tokenizer);
  // BERT's template knows two, which such a model cannot look up.
  if (description.model.num_segments == 1) spec = without_segments(std::move(spec));
  const std::string tokenizer = text::write_tokenizer_json(spec);
  model.tokenizer = text::make_json_tokenizer(tokenizer, (folder / "tokenizer").string());
  require_room_for_text(model, folder);
  model.num_pieces = model.tokenizer->size();
  model.assets["tokenizer.json"] = tokenizer;
  if (description.head == Head::kLabels) {
    const bool is_number = description.label_kind == LabelKind::kNumber;
    model.assets["labels.json"] =
        nlohmann::json(is_number ? std::vector<std::string>() : description.labels).dump();
  }
  model.files = std::make_shared<const store::WeightFiles>(folder);
  take_tensors(model, folder, options);
  require_expressible(model.config, config);
  fit_to_vocabulary(model, folder, options.ignore_extra);
  model.texts = {.byte_bpe = spec.model == text::TokenizerSpec::Model::kByteBpe,
                 .max_tokens = longest_text(folder, description.model.max_positions)};
  model.vectors = read_embed_recipe(folder);
  return model;
}

}  // namespace stretto::interchange
