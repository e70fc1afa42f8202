// model.embedding_scale, and configurations of runs that are older than it.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/hash.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "families/translation/translation_options.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

constexpr const char* kWhere = "/run/config.toml";
const std::string kLstms = "[model.encoder]\nname = \"lstm\"\n[model.decoder]\nname = \"lstm\"\n";

class EmbeddingScaleKey : public ::testing::Test {
 protected:
  LoadedExperiment load(const std::string& lines) {
    folder_.write("a", "a\n");
    const std::string config = folder_.write(
        "my.toml",
        "[data]\ntrain_src = [\"a\"]\ntrain_tgt = [\"a\"]\n[train]\nmax_steps = 9000\n" + lines);
    return load_experiment(config, {});
  }
  std::string message(const std::string& lines) {
    return stretto::testing::failure(ExitCode::kUsage, [&] { load(lines); }).message();
  }
  /// The stored configuration as a run has it that was begun before there was the key.
  static std::string without_the_key(const LoadedExperiment& loaded) {
    std::string text = loaded.resolved_toml;
    const size_t at = text.find("\nembedding_scale = ");
    if (at == std::string::npos) throw std::logic_error("the test is stale: no embedding_scale");
    text.erase(at, text.find('\n', at + 1) - at);
    return text;
  }
  static std::string scale_in(const LoadedExperiment& loaded) {
    return translation_of(loaded.options).model.embedding_scale;
  }

 private:
  stretto::testing::TempDir folder_;
};

TEST_F(EmbeddingScaleKey, IsAutoUnlessItIsGiven) {
  EXPECT_EQ(scale_in(load("")), "auto");
  EXPECT_EQ(scale_in(load(kLstms)), "auto");
  for (const char* value : {"auto", "sqrt", "none"}) {
    const auto loaded = load(std::string("[model]\nembedding_scale = \"") + value + "\"\n");
    EXPECT_EQ(scale_in(loaded), value);
    const auto again = load_stored_experiment(loaded.resolved_toml, kWhere, {});
    EXPECT_EQ(scale_in(again), value);
    EXPECT_EQ(again.config_hash, loaded.config_hash);
  }
}

TEST_F(EmbeddingScaleKey, OfAnotherValueIsAnsweredWithThoseThereAre) {
  const std::string text = message("[model]\nembedding_scale = \"root\"\n");
  EXPECT_NE(text.find("embedding_scale"), std::string::npos) << text;
  for (const char* value : {"auto", "sqrt", "none"}) {
    EXPECT_NE(text.find(value), std::string::npos) << text;
  }
}

TEST_F(EmbeddingScaleKey, AnswersToItsNamesInOtherToolkits) {
  for (const char* name : {"no_scale_embedding", "scale_embedding", "embed_scale"}) {
    const std::string text = message(std::string("[model]\n") + name + " = true\n");
    EXPECT_NE(text.find("model.embedding_scale"), std::string::npos) << text;
  }
}

TEST_F(EmbeddingScaleKey, RunsOfTransformersFromBeforeItGoOn) {
  const auto now = load("[model.encoder]\nname = \"light_conv\"\n");
  const std::string before = without_the_key(now);
  const auto stored = load_stored_experiment(before, kWhere, {});
  EXPECT_EQ(scale_in(stored), "auto");
  EXPECT_EQ(stored.config_hash, now.config_hash);
  EXPECT_TRUE(differences_from(before, kWhere, now.options, false).empty());
  // The hash that the run has is over the keys that there were.
  Experiment options = now.options;
  auto schema = experiment_schema(options);
  std::erase_if(schema.keys, [](const auto& key) { return key.path == "model.embedding_scale"; });
  EXPECT_EQ(stated_config_hash(before, kWhere), hex64(config::fixed_hash(schema, {})));
  EXPECT_NE(stated_config_hash(before, kWhere), now.config_hash);
}

TEST_F(EmbeddingScaleKey, RunsOfOtherPartsFromBeforeItMultipliedTheirRows) {
  const std::vector<std::string> pairs{kLstms, "[model.decoder]\nname = \"lstm\"\n",
                                       "[model.encoder]\nname = \"conv\"\n"};
  for (const std::string& lines : pairs) {
    SCOPED_TRACE(lines);
    const auto now = load(lines);
    const std::string before = without_the_key(now);
    EXPECT_EQ(scale_in(load_stored_experiment(before, kWhere, {})), "sqrt");
    EXPECT_EQ(scale_in(load_stored_experiment(now.resolved_toml, kWhere, {})), "auto");
    EXPECT_EQ(
        differences_from(before, kWhere, now.options, false),
        (std::vector<std::string>{"model.embedding_scale: \"sqrt\" in the run, \"auto\" now"}));
  }
}

}  // namespace
}  // namespace stretto::experiment
