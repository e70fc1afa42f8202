#include "families/text/folders/export_model.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "families/text/folders/model_config.h"
#include "interchange/folder_tensors.h"
#include "interchange/incompatibility.h"
#include "interchange/new_folder.h"
#include "interchange/tensors.h"
#include "interchange/tokenizer_folder.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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
  require_all_written(model.tensors, names);
  const auto tensors = without_spare_rows(
      model.tensors, model.description.vocab_size,
      [&](const std::string& name) { return is_table_of_tokens(name, model.description); });
  auto theirs = separated(tensors, names, model.description.pad_id + 1, "the checkpoint");
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
