// Models of transformers, and what PyTorch computed with them: tests/interchange/store_models.py
// wrote both. So imports are compared where there is no Python.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "data/batch.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/text_sections.h"
#include "models/packed.h"
#include "models/text_model.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "tasks/registry.h"
#include "tasks/text_encoder/embedder.h"
#include "tasks/text_encoder/encoder_of_run.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "text/encoded_text.h"

namespace stretto::engine {
namespace {

namespace fs = std::filesystem;

constexpr float kTolerance = 1e-4F;

at::Tensor stored_row(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<float>>(), at::kFloat);
}

at::Tensor stored_rows(const nlohmann::json& rows) {
  std::vector<at::Tensor> all;
  for (const auto& row : rows) all.push_back(stored_row(row));
  return at::stack(all);
}

/// Of texts, ids with special tokens.
text::EncodedText encoded(const text::TextEncoder& encoder, const nlohmann::json& stored) {
  const auto first = stored.at("text").get<std::string>();
  if (!stored.contains("second")) return encoder.encode(first);
  return encoder.encode(first, stored.at("second").get<std::string>());
}

/// [B, L] of labels, [N, 2] of answers, [N, V] of masked tokens: log of probabilities.
at::Tensor logits_of(models::TextModel& model, const nn::PackedRows& input) {
  const models::ForwardContext context;
  switch (model.head_kind()) {
    case models::TextHeadKind::kMaskedTokens:
      return model.masked_tokens().log_probs(model.encode(input, context));
    case models::TextHeadKind::kSpans:
      return model.spans().scores(model.encode(input, context));
    case models::TextHeadKind::kLabels:
      return model.labels().logits(model.pooled(input, context));
    case models::TextHeadKind::kNone:
      break;
  }
  return model.encode(input, context);
}

void expect_near(const char* what, const at::Tensor& got, const at::Tensor& wanted) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_LE((got.to(at::kFloat) - wanted).abs().max().item<float>(), kTolerance) << what;
}

/// A run that `stretto import` makes of a stored folder.
class StoredModels : public ::testing::Test {
 protected:
  void import_folder(const std::string& name) {
    const fs::path assets = fs::path(STRETTO_SOURCE_DIR) / "tests/assets/transformers";
    stored_ = parse_json(read_file(assets / (name + ".json")), name + ".json", 0);
    const auto told = stretto::testing::standard_output_of(
        [&] { run_import({.folder = (assets / name).string(), .run_directory = run_.string()}); });
    EXPECT_NE(told.find(stored_.at("class").get<std::string>()), std::string::npos) << told;
    loaded_ = experiment::load_stored_experiment(experiment::read_run_config(run_),
                                                 (run_ / "config.toml").string(), {});
  }

  /// Ids, logits and vectors, each as the commands compute them.
  void expect_same() const {
    const at::NoGradGuard no_grad;
    const auto folder = runs::RunFolder::open(run_);
    const auto sections = experiment::text_sections(loaded_.options);
    const auto run = tasks::load_encoder(loaded_.options, folder, "", at::kCPU);
    const text::TextEncoder encoder(*run.tokenizer.tokenizer,
                                    {.max_tokens = sections.max_text_tokens});
    data::PackedTokens ids, segments;
    std::vector<text::EncodedText> alone;
    std::vector<at::Tensor> logits, vectors;
    for (const auto& stored : stored_.at("texts")) {
      auto text = encoded(encoder, stored);
      EXPECT_EQ(text.ids, stored.at("ids").get<std::vector<int64_t>>()) << stored.at("text");
      EXPECT_EQ(text.segments, stored.at("segments").get<std::vector<int64_t>>())
          << stored.at("text");
      ids.append(text.ids);
      segments.append(text.segments);
      logits.push_back(stored_rows(stored.at("logits")));
      if (!stored.contains("mean")) continue;
      vectors.push_back(stored_row(stored.at("mean")));
      alone.push_back(std::move(text));
    }
    ASSERT_FALSE(alone.empty());
    expect_near("vectors", tasks::Embedder(run.model, {.pooling = "mean"}).embed(alone),
                at::stack(vectors));
    const auto model = whole_model(folder);
    const bool has_segments = sections.model->num_segments > 0;
    const auto input =
        models::pack_text(ids, has_segments ? &segments : nullptr, nullptr, at::kCPU);
    const bool are_probabilities = model->head_kind() == models::TextHeadKind::kMaskedTokens;
    const auto wanted = at::cat(logits);
    expect_near("logits", logits_of(*model, input),
                are_probabilities ? wanted.log_softmax(-1) : wanted);
  }

  models::TextHeadKind head() const {
    return whole_model(runs::RunFolder::open(run_))->head_kind();
  }

 private:
  std::shared_ptr<models::TextModel> whole_model(const runs::RunFolder& folder) const {
    auto model = std::dynamic_pointer_cast<models::TextModel>(
        tasks::family_of(loaded_.options)
            .make_network(loaded_.options, folder.read_assets(), /*draws_weights=*/true));
    runs::load_weights(runs::open_checkpoint(run_, ""), *model);
    model->eval();
    return model;
  }

  const testing::TempDir dir_;
  const fs::path run_ = dir_ / "run";
  nlohmann::json stored_;
  experiment::LoadedExperiment loaded_;
};

TEST_F(StoredModels, BertReadsLabelsOfTextsAndPairs) {
  import_folder("bert");
  EXPECT_EQ(head(), models::TextHeadKind::kLabels);
  expect_same();
}

TEST_F(StoredModels, RobertaReadsAnswers) {
  import_folder("roberta");
  EXPECT_EQ(head(), models::TextHeadKind::kSpans);
  expect_same();
}

TEST_F(StoredModels, DistilBertReadsMaskedTokens) {
  import_folder("distilbert");
  EXPECT_EQ(head(), models::TextHeadKind::kMaskedTokens);
  expect_same();
}

}  // namespace
}  // namespace stretto::engine
