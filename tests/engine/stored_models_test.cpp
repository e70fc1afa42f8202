// Models of transformers, and what PyTorch computed with them: tests/interchange/store_models.py
// wrote both. So imports and exports are compared where there is no Python.
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
#include "data/pairs/pair_columns.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/language_model/engine/language_run.h"
#include "families/text/encoder_sections.h"
#include "families/text/engine/embedder.h"
#include "families/text/engine/encoder_of_run.h"
#include "families/translation/engine/load_run.h"
#include "models/causal_model.h"
#include "models/packed.h"
#include "models/seq2seq_model.h"
#include "models/text_model.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "store/safetensors.h"
#include "tasks/registry.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "text/encoded_text.h"
#include "text/sequence_template.h"
#include "text/tokenizer.h"

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

std::vector<int64_t> stored_ids(const nlohmann::json& ids) {
  return ids.get<std::vector<int64_t>>();
}

/// The ids of texts, with special tokens.
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

/// Tensors are those of `save_pretrained`, bit for bit: transformers loads the folder whole. Only
/// RoBERTa's table of positions has other bytes, in the rows that nothing reads.
void expect_same_tensors(const fs::path& got, const fs::path& wanted) {
  const store::SafetensorsFile ours(got / "model.safetensors"),
      theirs(wanted / "model.safetensors");
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const auto& tensor : theirs.tensors()) {
    const auto* found = ours.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype) << tensor.name;
    if (tensor.name == "roberta.embeddings.position_embeddings.weight") continue;
    EXPECT_TRUE(found->bytes == tensor.bytes) << tensor.name;
  }
}

/// Compares the keys that both have: sizes, activations, ids. What is read in training, or by a
/// search, may differ.
void expect_same_settings(const fs::path& got, const fs::path& wanted) {
  const auto ours = parse_json(read_file(got / "config.json"), "config.json", 0),
             theirs = parse_json(read_file(wanted / "config.json"), "config.json", 0);
  for (const auto& [key, value] : theirs.items()) {
    // Defaults may be left out, or stand for nothing.
    const bool is_free = value.is_null() || key.ends_with("dropout") ||
                         key == "forced_eos_token_id" || key == "rope_scaling" ||
                         key == "max_window_layers";
    if (is_free || !ours.contains(key)) continue;
    EXPECT_EQ(ours.at(key), value) << key;
  }
  EXPECT_EQ(ours.at("architectures"), theirs.at("architectures"));
}

/// A stored folder, and the run that `stretto import` makes of it.
class StoredFolder : public ::testing::Test {
 protected:
  void import_stored(const std::string& name) {
    const fs::path assets = fs::path(STRETTO_SOURCE_DIR) / "tests/assets/transformers";
    place_ = dir_ / name;
    folder_ = assets / name;
    stored_ = parse_json(read_file(assets / (name + ".json")), name + ".json", 0);
    import_as("run", folder_);
  }

  /// What `stretto export --format hf` writes of the run is imported, and is the run from now on.
  void export_and_import() {
    const fs::path exported = place_ / "exported";
    expect_told([&] {
      run_export(
          {.experiment = loaded_, .run_directory = run_.string(), .folder = exported.string()});
    });
    expect_same_tensors(exported, folder_);
    expect_same_settings(exported, folder_);
    import_as("again", exported);
  }

  const nlohmann::json& stored() const { return stored_; }
  const experiment::Experiment& options() const { return loaded_.options; }
  runs::RunFolder run() const { return runs::RunFolder::open(run_); }

 private:
  void import_as(const std::string& name, const fs::path& folder) {
    run_ = place_ / name;
    expect_told([&] { run_import({.folder = folder.string(), .run_directory = run_.string()}); });
    loaded_ = experiment::load_stored_experiment(experiment::read_run_config(run_),
                                                 (run_ / "config.toml").string(), {});
  }

  /// The command names the class.
  template <class Command>
  void expect_told(const Command& command) const {
    const auto told = stretto::testing::standard_output_of(command);
    EXPECT_NE(told.find(stored_.at("class").get<std::string>()), std::string::npos) << told;
  }

  const testing::TempDir dir_;
  fs::path place_, folder_, run_;
  nlohmann::json stored_;
  experiment::LoadedExperiment loaded_;
};

class StoredModels : public StoredFolder {
 protected:
  /// Ids, logits and vectors, each as the commands compute them.
  void expect_same() const {
    const at::NoGradGuard no_grad;
    const auto sections = experiment::encoder_sections(options());
    const auto loaded = tasks::load_encoder(options(), run(), "", at::kCPU);
    const text::TextEncoder encoder(*loaded.tokenizer.tokenizer,
                                    {.max_tokens = sections.max_text_tokens});
    data::PackedTokens ids, segments;
    std::vector<text::EncodedText> alone;
    std::vector<at::Tensor> logits, vectors;
    for (const auto& item : stored().at("texts")) {
      auto text = encoded(encoder, item);
      EXPECT_EQ(text.ids, stored_ids(item.at("ids"))) << item.at("text");
      EXPECT_EQ(text.segments, stored_ids(item.at("segments"))) << item.at("text");
      ids.append(text.ids);
      segments.append(text.segments);
      logits.push_back(stored_rows(item.at("logits")));
      if (!item.contains("mean")) continue;
      vectors.push_back(stored_row(item.at("mean")));
      alone.push_back(std::move(text));
    }
    ASSERT_FALSE(alone.empty());
    expect_near("vectors", tasks::Embedder(loaded.model, {.pooling = "mean"}).embed(alone),
                at::stack(vectors));
    const auto model = whole_model();
    const bool has_segments = sections.model->num_segments > 0;
    const auto input =
        models::pack_text(ids, has_segments ? &segments : nullptr, nullptr, at::kCPU);
    const bool are_probabilities = model->head_kind() == models::TextHeadKind::kMaskedTokens;
    const auto wanted = at::cat(logits);
    expect_near("logits", logits_of(*model, input),
                are_probabilities ? wanted.log_softmax(-1) : wanted);
  }

  models::TextHeadKind head() const { return whole_model()->head_kind(); }

 private:
  std::shared_ptr<models::TextModel> whole_model() const {
    const auto folder = run();
    auto model =
        std::dynamic_pointer_cast<models::TextModel>(tasks::family_of(options()).make_network(
            options(), folder.read_assets(), /*draws_weights=*/true));
    runs::load_weights(runs::open_checkpoint(folder.directory(), ""), *model);
    model->eval();
    return model;
  }
};

TEST_F(StoredModels, BertReadsLabelsOfTextsAndPairs) {
  import_stored("bert");
  EXPECT_EQ(head(), models::TextHeadKind::kLabels);
  expect_same();
}

TEST_F(StoredModels, RobertaReadsAnswers) {
  import_stored("roberta");
  EXPECT_EQ(head(), models::TextHeadKind::kSpans);
  expect_same();
}

TEST_F(StoredModels, DistilBertReadsMaskedTokens) {
  import_stored("distilbert");
  EXPECT_EQ(head(), models::TextHeadKind::kMaskedTokens);
  expect_same();
}

TEST_F(StoredModels, EncodersComputeTheSameAfterTheyWereExported) {
  for (const char* name : {"bert", "roberta", "distilbert"}) {
    SCOPED_TRACE(name);
    import_stored(name);
    const auto kind = head();
    export_and_import();
    EXPECT_EQ(head(), kind);
    expect_same();
  }
}

class StoredTranslations : public StoredFolder {
 protected:
  /// Ids, text, log-probabilities and losses, each as the commands compute them.
  void expect_same() const {
    const at::NoGradGuard no_grad;
    const auto loaded = tasks::load_translation_run(options(), run(), "", at::kCPU);
    auto& model = *loaded.models.front();
    auto batch = data::pair_batch();
    std::vector<at::Tensor> losses;
    for (const auto& item : stored().at("texts")) {
      SCOPED_TRACE(item.at("text"));
      const auto ids = with_end(*loaded.tokenizers.src, item.at("text")),
                 target = with_end(*loaded.tokenizers.tgt, item.at("target"));
      EXPECT_EQ(ids, stored_ids(item.at("ids")));
      ASSERT_EQ(target, stored_ids(item.at("target_ids")));
      EXPECT_EQ(loaded.tokenizers.tgt->decode(target), item.at("decoded").get<std::string>());
      const auto log_probs = stored_rows(item.at("logits")).log_softmax(-1);
      expect_near("log-probabilities of a search", log_probs_of(model, ids, target), log_probs);
      losses.push_back(-log_probs.gather(1, at::tensor(target, at::kLong).unsqueeze(1)));
      batch.sample_ids.push_back(static_cast<int64_t>(batch.sample_ids.size()));
      data::source(batch).append(ids);
      data::target(batch).append(target);
    }
    expect_near("losses of whole texts", model.loss(batch, {}).token_nll,
                at::cat(losses).squeeze(1));
  }

 private:
  static std::vector<int64_t> with_end(const text::Tokenizer& tokenizer,
                                       const nlohmann::json& line) {
    std::vector<int64_t> ids;
    tokenizer.encode(line.get<std::string>(), ids);
    ids.push_back(tokenizer.specials().eos);
    return ids;
  }

  /// One target token at a time: [target length, V].
  static at::Tensor log_probs_of(models::Seq2SeqModel& model, const std::vector<int64_t>& source,
                                 const std::vector<int64_t>& target) {
    data::PackedTokens sources;
    sources.append(source);
    const auto steps = model.start(sources, /*lanes_per_src=*/1);
    std::vector<at::Tensor> rows;
    int64_t before = model.target_specials().bos;
    for (const int64_t id : target) {
      rows.push_back(steps->step(at::tensor({before}, at::kLong)));
      before = id;
    }
    return at::cat(rows);
  }
};

TEST_F(StoredTranslations, MarianTranslates) {
  import_stored("marian");
  expect_same();
}

TEST_F(StoredTranslations, PegasusBeginsWithAnotherTokenThanPadding) {
  import_stored("pegasus");
  expect_same();
}

TEST_F(StoredTranslations, ModelsComputeTheSameAfterTheyWereExported) {
  for (const char* name : {"marian", "pegasus"}) {
    SCOPED_TRACE(name);
    import_stored(name);
    export_and_import();
    expect_same();
  }
}

class StoredLanguageModels : public StoredFolder {
 protected:
  /// Ids, text, log-probabilities of tokens, and logits behind the last one, to a constant.
  void expect_same() const {
    const at::NoGradGuard no_grad;
    const auto loaded = tasks::load_one_language_model(options(), run(), "", at::kCPU);
    auto& model = *loaded.models.front();
    const auto& tokenizer = *loaded.tokenizer.tokenizer;
    for (const auto& item : stored().at("texts")) {
      SCOPED_TRACE(item.at("text"));
      const auto ids = ids_of(tokenizer, item.at("text"));
      ASSERT_EQ(ids, stored_ids(item.at("ids")));
      EXPECT_EQ(tokenizer.decode(ids), item.at("decoded").get<std::string>());
      data::PackedTokens texts;
      texts.append(ids);
      const auto rows = models::pack(texts, nullptr, at::kCPU);
      const auto log_probs = model.head().log_probs(model.forward(rows, {}, {}).rows);
      const auto wanted = stored_row(item.at("last"));
      expect_near("behind the last token", log_probs[-1], wanted.log_softmax(-1));
      const int64_t length = std::ssize(ids);
      if (length == 1) continue;
      const auto next = at::tensor(ids, at::kLong).slice(0, 1).unsqueeze(1);
      expect_near("of each token", log_probs.slice(0, 0, length - 1).gather(1, next).squeeze(1),
                  stored_row(item.at("log_probs")));
    }
  }

 private:
  /// With what the tokenizer itself puts around a text, which may be nothing.
  static std::vector<int64_t> ids_of(const text::Tokenizer& tokenizer, const nlohmann::json& line) {
    std::vector<int64_t> ids;
    const auto sequences = tokenizer.sequences();
    for (const auto& slot : sequences.single) {
      if (slot.part == text::SequenceTemplate::Part::kSpecial) {
        ids.push_back(slot.id);
      } else {
        tokenizer.encode(line.get<std::string>(), ids);
      }
    }
    return ids;
  }
};

TEST_F(StoredLanguageModels, Gpt2ReadsNothingInFrontOfATextAndHasLearnedPositions) {
  import_stored("gpt2");
  expect_same();
}

TEST_F(StoredLanguageModels, LlamaReadsItsSentencePieceModelAndScaledPositions) {
  import_stored("llama");
  expect_same();
}

TEST_F(StoredLanguageModels, MistralHasAWindowAndMarksTheFirstWordAlone) {
  import_stored("mistral");
  expect_same();
}

TEST_F(StoredLanguageModels, Qwen2HasBiasesAndComposesText) {
  import_stored("qwen2");
  expect_same();
}

TEST_F(StoredLanguageModels, Qwen3NormalisesQueriesAndKeysOfWideHeads) {
  import_stored("qwen3");
  expect_same();
}

TEST_F(StoredLanguageModels, ModelsComputeTheSameAfterTheyWereExported) {
  for (const char* name : {"gpt2", "llama", "mistral", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    import_stored(name);
    export_and_import();
    expect_same();
  }
}

}  // namespace
}  // namespace stretto::engine
