#include "interchange/export_model.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "families/text/text_sections.h"
#include "families/translation/translation_options.h"
#include "interchange/architectures/common.h"
#include "interchange/architectures/marian.h"
#include "interchange/model_config.h"
#include "interchange/new_folder.h"
#include "interchange/tensors.h"
#include "interchange/tokenizer_folder.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

/// The classes of one kind of models, and the tasks that have such models.
struct KindOfClass {
  const char* models;
  bool (*has)(std::string_view model_type);
  bool (*is_of)(const experiment::Experiment& experiment);
};
constexpr KindOfClass kKindsOfClasses[] = {
    {"encoders of text", [](std::string_view type) { return find_architecture(type) != nullptr; },
     [](const experiment::Experiment& e) { return experiment::find_text_sections(e).has_value(); }},
    {"translation models", [](std::string_view type) { return find_marian_class(type) != nullptr; },
     [](const experiment::Experiment& e) { return e.task.is<experiment::TranslationOptions>(); }},
};

/// The nearest first: without segments DistilBERT, with bytes RoBERTa, else BERT.
std::array<const Architecture*, 3> by_nearness(const ModelDescription& description, bool byte_bpe) {
  if (byte_bpe) return {&kRoberta, &kBert, &kDistilBert};
  if (description.model.num_segments == 0) return {&kDistilBert, &kBert, &kRoberta};
  return {&kBert, &kRoberta, &kDistilBert};
}

[[noreturn]] void refuse_export(const std::vector<std::string>& reasons) {
  throw Error(ExitCode::kUsage,
              "no class of transformers is equal to this model: " + join(reasons, "; "),
              "the checkpoint itself is safetensors (RUN/checkpoints), which other programs read");
}

/// Tables of tokens without the rows that round them up.
std::vector<TensorView> without_spare_rows(const ExportedModel& model) {
  auto tensors = model.tensors;
  const int64_t ids = model.description.vocab_size;
  for (TensorView& tensor : tensors) {
    const bool is_of_tokens = tensor.name == "encoder.embedding.weight" ||
                              (model.description.head == Head::kMaskedTokens &&
                               (tensor.name == "head.output.weight" || tensor.name == "head.bias"));
    if (!is_of_tokens || tensor.shape.empty() || tensor.shape[0] <= ids) continue;
    const size_t row = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
    tensor.shape[0] = ids;
    tensor.bytes = tensor.bytes.substr(0, row * static_cast<size_t>(ids));
  }
  return tensors;
}

/// A model without segments is one whose single segment adds nothing.
void add_empty_segments(const ExportedModel& model, const Architecture& architecture,
                        bool has_prefix, std::vector<store::StreamedTensor>& list) {
  if (model.description.model.num_segments > 0 || architecture.segments.empty()) return;
  const auto names =
      expand(architecture.segments, 0, has_prefix ? std::string_view() : architecture.prefix);
  const int64_t width = models::sizes_of(model.description.model).d_model;
  list.push_back(
      {.tensor = {names[0].theirs[0], store::DType::kF32, {1, width}, {}},
       .make = [width] { return std::string(static_cast<size_t>(width) * sizeof(float), '\0'); }});
}

void require_all_written(const ExportedModel& model, const std::vector<NamePair>& names) {
  for (const TensorView& tensor : model.tensors) {
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const NamePair& pair) { return pair.ours == tensor.name; });
    if (known) continue;
    throw Error(
        ExitCode::kBadData,
        "the checkpoint has `" + printable(tensor.name) + "`, which the model does not have",
        "the checkpoint belongs to another configuration");
  }
}

}  // namespace

text::TokenizerSpec exported_tokenizer(const std::map<std::string, std::string>& assets,
                                       const std::string& run) {
  constexpr const char* kFile = "tokenizer.json";
  const auto found = assets.find(kFile);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage,
                run + ": the tokenizer is a SentencePiece model, which has no tokenizer.json",
                "models of WordPiece and of byte-level BPE are exported");
  }
  return text::parse_tokenizer_json(found->second, kFile);
}

void require_kind_of_class(const experiment::Experiment& experiment, const std::string& wanted) {
  for (const auto& kind : kKindsOfClasses) {
    if (!kind.has(wanted) || kind.is_of(experiment)) continue;
    throw Error(ExitCode::kUsage,
                "--model-type " + wanted + " is a class of " + kind.models +
                    ", and the task of the run is " + experiment.task.name(),
                "leave the option out");
  }
}

const Architecture& choose_architecture(const ModelDescription& description, bool byte_bpe,
                                        const std::string& wanted) {
  if (const auto& adapter = description.model.adapter; adapter.is_on()) {
    refuse_export({adapter_incompatibility(adapter)});
  }
  std::vector<std::string> reasons;
  for (const Architecture* architecture : by_nearness(description, byte_bpe)) {
    if (wanted != "auto" && wanted != architecture->model_type) continue;
    const std::string incompatibility = architecture->incompatibility(description);
    if (incompatibility.empty()) return *architecture;
    reasons.push_back(class_name(*architecture, description.head) + ": " + incompatibility);
  }
  refuse_export(reasons);
}

void export_model(const ExportedModel& model, const Architecture& architecture,
                  const fs::path& folder) {
  const bool has_prefix = model.description.head != Head::kNone;
  const auto names = names_of(architecture, model.description, has_prefix);
  require_all_written(model, names);
  auto theirs =
      separated(without_spare_rows(model), names, model.description.pad_id + 1, "the checkpoint");
  add_empty_segments(model, architecture, has_prefix, theirs);
  NewFolder target(folder);
  store::stream_safetensors(target.path() / "model.safetensors", theirs, {{"format", "pt"}});
  const auto tokenizer =
      tokenizer_files(model.tokenizer, model.max_text_tokens, model.description.model.num_segments);
  for (const auto& [name, bytes] : tokenizer) {
    write_file_atomic(target.path() / name, bytes);
  }
  write_file_atomic(target.path() / "config.json",
                    write_model_config(architecture, model.description));
  target.publish();
}

}  // namespace stretto::interchange
