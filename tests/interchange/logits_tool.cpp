// For crosscheck_models.py: what the model of a run computes.
//   logits_tool RUN INPUT OUTPUT     safetensors: ids, segments and offsets [B + 1], I64, to rows
//   [N, D]
//                                    and logits: of masked tokens [N, V] (log of probabilities), of
//                                    labels [B, L], of answers [N, 2]; pooled [B, D] without a head
#include <torch/nn/module.h>

#include <cstring>
#include <iostream>

#include "base/error.h"
#include "data/labelled/labelled_set.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/text_sections.h"
#include "models/packed.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "store/safetensors.h"
#include "tasks/text_encoder/run_model.h"

namespace {

using namespace stretto;
namespace fs = std::filesystem;

std::vector<int64_t> integers(const store::SafetensorsFile& file, const char* name) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr) throw Error(ExitCode::kUsage, std::string("no tensor ") + name);
  std::vector<int64_t> values(static_cast<size_t>(tensor->num_elements()));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

int64_t num_labels(const tasks::Assets& assets) {
  const auto labels = data::labels_from_json(assets.at("labels.json"), "labels.json");
  return labels ? labels->size() : 1;
}

tasks::TextHead head_of(const experiment::Experiment& experiment, const tasks::Assets& assets) {
  if (experiment::text_sections(experiment).model->head == "none") return {};
  if (experiment.task.name() == "masked_lm") return {.kind = models::TextHeadKind::kMaskedTokens};
  if (experiment.task.name() == "question_answering") return {.kind = models::TextHeadKind::kSpans};
  return {.kind = models::TextHeadKind::kLabels, .num_labels = num_labels(assets)};
}

at::Tensor logits(models::TextModel& model, const at::Tensor& rows, const nn::PackedRows& input) {
  const models::ForwardContext context;
  switch (model.head_kind()) {
    case models::TextHeadKind::kMaskedTokens:
      return model.masked_tokens().log_probs(rows);
    case models::TextHeadKind::kSpans:
      return model.spans().scores(rows);
    case models::TextHeadKind::kLabels:
      return model.labels().logits(model.pooled(rows, input, context));
    case models::TextHeadKind::kNone:
      break;
  }
  return model.pooled(rows, input, context);
}

store::TensorView view_of(const char* name, const at::Tensor& tensor) {
  return {name,
          store::DType::kF32,
          tensor.sizes().vec(),
          {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

void run(const fs::path& run_directory, const fs::path& input, const fs::path& output) {
  const auto folder = runs::RunFolder::open(run_directory);
  const auto loaded = experiment::load_stored_experiment(
      experiment::read_run_config(run_directory), (run_directory / "config.toml").string(), {});
  const auto assets = folder.read_assets();
  const auto tokenizer = tasks::load_tokenizer(loaded.options, assets);
  const auto model =
      tasks::make_run_model(loaded.options, *tokenizer.tokenizer, head_of(loaded.options, assets),
                            at::kCPU, tasks::FirstTextWeights::kUnset);
  runs::load_weights(runs::open_checkpoint(run_directory, ""), *model);
  model->eval();
  const at::NoGradGuard no_grad;
  const store::SafetensorsFile file(input);
  const data::PackedTokens tokens{integers(file, "ids"), integers(file, "offsets")};
  const data::PackedTokens segments{integers(file, "segments"), integers(file, "offsets")};
  const bool has_segments = experiment::text_sections(loaded.options).model->num_segments > 0;
  const auto packed =
      models::pack_text(tokens, has_segments ? &segments : nullptr, nullptr, at::kCPU);
  const auto rows = model->encode(packed, {}).contiguous();
  const auto scores = logits(*model, rows, packed).to(at::kFloat).contiguous();
  store::write_safetensors(output, {view_of("rows", rows), view_of("logits", scores)}, {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: logits_tool RUN INPUT OUTPUT\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const Error& error) {
    std::cerr << "error: " << error.message() << "\n";
    return static_cast<int>(error.code());
  }
}
