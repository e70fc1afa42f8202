#include "interchange/described_experiment.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/families/text/folders/described.h"
#include "tests/interchange/model_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::ModelFolder;

experiment::LoadedExperiment loaded(const nlohmann::json& config) {
  return load_described(stretto::testing::described_by(config.dump()), "a/bert");
}

TEST(DescribedExperiment, IsOneThatARunCanKeep) {
  const auto kept = loaded(ModelFolder::bert("BertForMaskedLM").config);
  EXPECT_EQ(kept.options.task.name(), "masked_lm");
  EXPECT_NE(kept.resolved_toml.find("num_heads = 2"), std::string::npos);
}

TEST(DescribedExperiment, IsRefusedInTheNameOfConfigJson) {
  auto config = ModelFolder::bert("BertForMaskedLM").config;
  config["hidden_dropout_prob"] = 2.0;
  config["layer_norm_eps"] = -1.0;
  const std::string message =
      stretto::testing::failure(ExitCode::kBadData, [&] { loaded(config); }).message();
  EXPECT_TRUE(message.starts_with(
      "a/bert/config.json describes a model that Stretto refuses: `model.norm_epsilon` must be in"))
      << message;
  EXPECT_NE(message.find("\nerror: `model.dropout` must be in"), std::string::npos) << message;
  EXPECT_EQ(message.find("config.json:"), std::string::npos) << message;
}

}  // namespace
}  // namespace stretto::interchange
