#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "engine/commands.h"
#include "families/translation/requests.h"
#include "families/translation/translation_options.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "tests/base/temp_dir.h"

namespace stretto::engine {
namespace {

namespace fs = std::filesystem;
using experiment::Experiment;

/// Small parts of every kind.
std::vector<models::Seq2SeqOptions> small_models() {
  std::vector<models::Seq2SeqOptions> all;
  const auto add = [&](const models::EncoderChoice& encoder, const models::DecoderChoice& decoder) {
    all.emplace_back();
    all.back().d_model = 8;
    all.back().encoder = encoder;
    all.back().decoder = decoder;
  };
  const models::StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
  add(stack, stack);
  add(models::LstmEncoderOptions{}, models::LstmDecoderOptions{});
  add(models::ConvEncoderOptions{.num_layers = 1}, models::ConvDecoderOptions{.num_layers = 1});
  add(models::LightEncoderOptions{}, models::LightDecoderOptions{});
  add(models::DynamicEncoderOptions{}, models::DynamicDecoderOptions{});
  return all;
}

TEST(TensorNames, AreThoseOfTheModelThatIsTrained) {
  for (const auto& options : small_models()) {
    SCOPED_TRACE(options.encoder.name());
    Experiment e;
    translation_of(e).model = options;
    const auto model = models::make_model(
        options, {.src_rows = 9, .tgt_rows = 9, .num_tgt_classes = 9}, losses::make_loss({}));
    const optim::Arena arena(*model);
    const auto names = tensor_names(e);
    ASSERT_EQ(names.size(), arena.slots().size());
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(names[i].name, arena.slots()[i].name);
      EXPECT_EQ(names[i].is_vector, arena.slots()[i].shape.size() <= 1) << names[i].name;
    }
  }
}

TEST(TensorNames, KnowWhatElseATiedTensorIs) {
  const auto also = [](const std::string& tie, const std::string& name) {
    Experiment e;
    translation_of(e).model = small_models().front();
    translation_of(e).model.tie_embeddings = tie;
    for (const auto& tensor : tensor_names(e)) {
      if (tensor.name == name) return tensor.also;
    }
    ADD_FAILURE() << name;
    return std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(also("all", "embedding.weight"),
            (Names{"encoder.embedding.weight", "decoder.embedding.weight", "output.weight"}));
  EXPECT_EQ(also("decoder", "decoder.embedding.weight"), Names{"output.weight"});
  EXPECT_EQ(also("decoder", "encoder.embedding.weight"), Names{});
  EXPECT_EQ(also("none", "output.weight"), Names{});
}

TEST(TensorNames, NeedNoMemoryHoweverLargeTheModel) {
  Experiment e;
  translation_of(e).model.d_model = 65536;
  translation_of(e).model.encoder.as<models::StackOptions>().ffn_dim = 1'000'000;
  EXPECT_FALSE(tensor_names(e).empty());
}

TEST(ModelCost, IsThatOfTheConfiguredModel) {
  CostRequest request{.sizes = tasks::TranslationSizes{.src_rows = 32768, .tgt_rows = 32768}};
  const auto cost = model_cost(request);
  EXPECT_EQ(cost.parameters, 60'915'712);
  EXPECT_EQ(cost.training_flops, 368'222'208);
  request.sizes.edit<tasks::TranslationSizes>().lengths.src = 60;
  EXPECT_GT(model_cost(request).training_flops, 1.3 * cost.training_flops);
  request.sizes.edit<tasks::TranslationSizes>().src_rows = 8;
  try {
    model_cost(request);
    FAIL() << "all tables are tied";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

TEST(Train, RefusesAPatternThatMatchesNothingBeforeAnythingIsMade) {
  const testing::TempDir dir;
  TrainRequest request{.experiment = {}, .run_directory = (dir / "run").string()};
  request.experiment.options.optim.groups = {"encodr.* lr_scale=0.5"};
  try {
    run_train(request);
    FAIL() << "it trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(
        std::string(error.what()).find("`optim.groups` (default): `encodr.*` matches no parameter"),
        std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(dir / "run"));
}

}  // namespace
}  // namespace stretto::engine
