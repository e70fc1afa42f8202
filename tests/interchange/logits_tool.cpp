// For crosscheck_models.py and crosscheck_translation.py: what the model of a run computes.
//   logits_tool RUN INPUT OUTPUT   safetensors in and out. Texts: ids, segments and offsets
//                                  [B + 1], I64, to rows [N, D] and logits: of masked tokens [N, V]
//                                  (log of probabilities), of labels [B, L], of answers [N, 2];
//                                  pooled [B, D] without a head. Translations: src,
//                                  src_offsets, tgt and tgt_offsets to logits [N, V] (log of
//                                  probabilities) of each target token, from a decoder that takes
//                                  one token at a time, and nll [N], of whole sentences as in
//                                  training. Pictures: pixels [B, 3, H, W], F32 and normalised,
//                                  to logits [B, L]
//   logits_tool RUN < LINES        of a translation: for each line a line of JSON with the ids of
//                                  either side, and the text that the target's ids decode to
#include <torch/nn/module.h>

#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/labelled/labelled_set.h"
#include "data/pairs/pair_columns.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/image_classification/engine/image_run.h"
#include "families/text/encoder_sections.h"
#include "families/text/engine/run_model.h"
#include "families/translation/engine/load_run.h"
#include "models/packed.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "store/safetensors.h"

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

data::PackedTokens packed_tokens(const store::SafetensorsFile& file, const char* name) {
  const auto offsets = integers(file, "offsets");
  return {integers(file, name), {offsets.begin(), offsets.end()}};
}

int64_t num_labels(const tasks::Assets& assets) {
  const auto labels = data::labels_from_json(assets.at("labels.json"), "labels.json");
  return labels ? labels->size() : 1;
}

tasks::TextHead head_of(const experiment::Experiment& experiment, const tasks::Assets& assets) {
  if (experiment::encoder_sections(experiment).model->head == "none") return {};
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
      return model.labels().logits(model.pooled(input, context));
    case models::TextHeadKind::kNone:
      break;
  }
  return model.pooled(input, context);
}

store::TensorView view_of(const char* name, const at::Tensor& tensor) {
  return {name,
          store::DType::kF32,
          tensor.sizes().vec(),
          {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

std::vector<std::vector<int64_t>> sequences(const store::SafetensorsFile& file, const char* name) {
  const auto ids = integers(file, name);
  const auto offsets = integers(file, (std::string(name) + "_offsets").c_str());
  std::vector<std::vector<int64_t>> all;
  for (size_t i = 1; i < offsets.size(); ++i) {
    all.emplace_back(ids.begin() + offsets[i - 1], ids.begin() + offsets[i]);
  }
  return all;
}

/// One token at a time, as a search does: [target length, V].
at::Tensor stepwise(models::Seq2SeqModel& model, const std::vector<int64_t>& src,
                    const std::vector<int64_t>& tgt) {
  data::PackedTokens source;
  source.append(src);
  const auto steps = model.start(source, 1);
  std::vector<at::Tensor> rows;
  int64_t before = model.target_specials().bos;
  for (const int64_t id : tgt) {
    rows.push_back(steps->step(at::tensor({before}, at::kLong)));
    before = id;
  }
  return at::cat(rows);
}

tasks::LoadedRun translation_run(const fs::path& run_directory) {
  const auto folder = runs::RunFolder::open(run_directory);
  const auto loaded = experiment::load_stored_experiment(
      experiment::read_run_config(run_directory), (run_directory / "config.toml").string(), {});
  return tasks::load_translation_run(loaded.options, folder, "", at::kCPU);
}

void run_translation(const fs::path& run_directory, const store::SafetensorsFile& file,
                     const fs::path& output) {
  const auto run = translation_run(run_directory);
  auto& model = *run.models.front();
  const at::NoGradGuard no_grad;
  const auto src = sequences(file, "src"), tgt = sequences(file, "tgt");
  data::Batch batch = data::pair_batch();
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i < src.size(); ++i) {
    rows.push_back(stepwise(model, src[i], tgt[i]));
    batch.sample_ids.push_back(static_cast<int64_t>(i));
    data::source(batch).append(src[i]);
    data::target(batch).append(tgt[i]);
  }
  const auto logits = at::cat(rows).contiguous();
  const auto nll = model.loss(batch, {}).token_nll.to(at::kFloat).contiguous();
  store::write_safetensors(output, {view_of("logits", logits), view_of("nll", nll)}, {});
}

void run_lines(const fs::path& run_directory) {
  const auto run = translation_run(run_directory);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<int64_t> src, tgt;
    run.tokenizers.src->encode(line, src);
    run.tokenizers.tgt->encode(line, tgt);
    std::cout << nlohmann::json{{"src", src},
                                {"tgt", tgt},
                                {"text", run.tokenizers.tgt->decode(tgt)}}
                     .dump()
              << "\n";
  }
}

void run_text(const fs::path& run_directory, const store::SafetensorsFile& file,
              const fs::path& output) {
  const auto folder = runs::RunFolder::open(run_directory);
  const auto loaded = experiment::load_stored_experiment(
      experiment::read_run_config(run_directory), (run_directory / "config.toml").string(), {});
  const auto assets = folder.read_assets();
  const auto tokenizer = tasks::load_tokenizer(loaded.options, assets);
  const auto model =
      tasks::make_run_model(loaded.options, *tokenizer.tokenizer, head_of(loaded.options, assets),
                            at::kCPU, tasks::FirstWeights::kUnset);
  runs::load_weights(runs::open_checkpoint(run_directory, ""), *model);
  model->eval();
  const at::NoGradGuard no_grad;
  const auto tokens = packed_tokens(file, "ids"), segments = packed_tokens(file, "segments");
  const bool has_segments = experiment::encoder_sections(loaded.options).model->num_segments > 0;
  const auto packed =
      models::pack_text(tokens, has_segments ? &segments : nullptr, nullptr, at::kCPU);
  const auto rows = model->encode(packed, {}).contiguous();
  const auto scores = logits(*model, rows, packed).to(at::kFloat).contiguous();
  store::write_safetensors(output, {view_of("rows", rows), view_of("logits", scores)}, {});
}

void run_images(const fs::path& run_directory, const store::SafetensorsFile& file,
                const fs::path& output) {
  const auto folder = runs::RunFolder::open(run_directory);
  const auto loaded = experiment::load_stored_experiment(
      experiment::read_run_config(run_directory), (run_directory / "config.toml").string(), {});
  const auto run = tasks::load_image_run(loaded.options, folder, "", at::kCPU);
  const auto& given = *file.find("pixels");
  at::Tensor pixels = at::empty(given.shape, at::kFloat);
  std::memcpy(pixels.mutable_data_ptr(), given.bytes.data(), given.bytes.size());
  auto& model = *run.models.front();
  model.eval();
  const at::NoGradGuard no_grad;
  const auto logits = model.forward({.pixels = pixels}, {}).to(at::kFloat).contiguous();
  store::write_safetensors(output, {view_of("logits", logits)}, {});
}

void run(const fs::path& run_directory, const fs::path& input, const fs::path& output) {
  const store::SafetensorsFile file(input);
  if (file.find("pixels") != nullptr) {
    run_images(run_directory, file, output);
  } else if (file.find("src") != nullptr) {
    run_translation(run_directory, file, output);
  } else {
    run_text(run_directory, file, output);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::cerr << "usage: logits_tool RUN INPUT OUTPUT, or logits_tool RUN < LINES\n";
    return 2;
  }
  try {
    if (argc == 2) {
      run_lines(argv[1]);
    } else {
      run(argv[1], argv[2], argv[3]);
    }
    return 0;
  } catch (const Error& error) {
    std::cerr << "error: " << error.message() << "\n";
    return static_cast<int>(error.code());
  }
}
