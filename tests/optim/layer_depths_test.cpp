#include "optim/layer_depths.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "optim/groups.h"
#include "optim/rate_table.h"
#include "optim/schedule.h"

namespace stretto::optim {
namespace {

const std::vector<std::string> kBert{"encoder.embedding.weight",
                                     "encoder.positions.weight",
                                     "encoder.segments.weight",
                                     "encoder.embedding_norm.bias",
                                     "encoder.layers.0.self_attention.qkv.weight",
                                     "encoder.layers.0.ffn_residual.norm.bias",
                                     "encoder.layers.1.ffn.up.weight",
                                     "encoder.layers.1.self_attention.qkv.lora_a",
                                     "encoder.final_norm.weight",
                                     "head.pooler.weight",
                                     "head.output.bias"};

TEST(LayerDepths, GoFromTheHeadDownToTheEmbeddings) {
  EXPECT_EQ(layer_depths(kBert), (std::vector<int64_t>{3, 3, 3, 3, 2, 2, 1, 1, 0, 0, 0}));
}

TEST(LayerDepths, OfEachStackAreItsOwn) {
  EXPECT_EQ(layer_depths(std::vector<std::string>{
                "embedding.weight", "encoder.layers.2.ffn.up.weight", "encoder.layers.0.x",
                "decoder.layers.0.x", "decoder.embedding.weight", "encoder.embedding.weight",
                "decoder.final_norm.weight", "output.weight"}),
            (std::vector<int64_t>{4, 1, 3, 1, 2, 4, 0, 0}))
      << "three layers and one";
  EXPECT_EQ(layer_depths(std::vector<std::string>{
                "decoders.de.layers.1.x", "decoders.cs.layers.0.x", "decoders.de.embedding.weight",
                "decoders.cs.embedding.weight"}),
            (std::vector<int64_t>{1, 1, 3, 2}));
  EXPECT_EQ(layer_depths(
                std::vector<std::string>{"layers.0.weight", "layers.1.weight", "embedding.weight"}),
            (std::vector<int64_t>{2, 1, 3}))
      << "a model that is one stack";
}

TEST(LayerDepths, OfAVisionTransformerPutPatchesBelowLayers) {
  EXPECT_EQ(layer_depths(std::vector<std::string>{
                "patches.weight", "class_token", "positions", "layers.0.ffn.up.weight",
                "layers.1.ffn.up.weight", "final_norm.weight", "head.weight"}),
            (std::vector<int64_t>{3, 3, 3, 2, 1, 0, 0}));
}

TEST(LayerDepths, OfAirbenchPutItsFirstLayerBelowTheOthers) {
  EXPECT_EQ(layer_depths(std::vector<std::string>{"whiten.bias", "layers.0.conv1.weight",
                                                  "layers.2.conv2.weight", "head.weight"}),
            (std::vector<int64_t>{4, 3, 1, 0}));
}

TEST(LayerDepths, NeedANumberBehindLayers) {
  for (const char* name :
       {"encoder.layers.x.weight", "encoder.layers.weight", "encoder.layers.3",
        "encoder.sublayers.3.weight", "layers.", "", "layers.99999999999999999999.weight"}) {
    EXPECT_FALSE(place_in_stack(name)) << name;
  }
  EXPECT_EQ(place_in_stack("a.layers.x.layers.7.b")->layer, 7);
}

/// encoder.embedding.weight, encoder.layers.{0,1}.weight, head.weight and head.bias.
struct Stack : torch::nn::Module {
  Stack() {
    const auto child = [](bool bias) {
      auto module = std::make_shared<torch::nn::Module>();
      module->register_parameter("weight", torch::ones({2, 2}));
      if (bias) module->register_parameter("bias", torch::ones({2}));
      return module;
    };
    auto encoder = std::make_shared<torch::nn::Module>();
    encoder->register_module("embedding", child(false));
    auto layers = std::make_shared<torch::nn::Module>();
    layers->register_module("0", child(false));
    layers->register_module("1", child(false));
    encoder->register_module("layers", layers);
    register_module("encoder", encoder);
    register_module("head", child(true));
  }
};

// With a gradient of one everywhere, plain gradient descent moves a weight by its rate.
TEST(LayerDecay, MultipliesTheScheduleOfEachLayerAtEveryStep) {
  const OptimOptions options{.name = "sgd",
                             .lr = 0.1,
                             .momentum = 0,
                             .groups = {"encoder.layers.0.* lr_scale=0.25"},
                             .layer_decay = 0.5};
  const ScheduleOptions schedule{.name = "linear", .warmup_steps = 2, .warmup_init_lr = 0};
  struct Row {
    int step;
    double head, layer1, layer0, embedding;
  };
  //                          depth 0  depth 1  depth 2, times 0.25  depth 3
  const std::vector<Row> rows{{1, 0.0, 0.0, 0.0, 0.0},
                              {2, 0.05, 0.025, 0.003125, 0.00625},
                              {3, 0.1, 0.05, 0.00625, 0.0125},
                              {4, 0.075, 0.0375, 0.0046875, 0.009375},
                              {5, 0.05, 0.025, 0.003125, 0.00625},
                              {6, 0.025, 0.0125, 0.0015625, 0.003125}};
  Stack model;
  Arena arena(model);
  const auto optimizer = make_optimizer(options, arena);
  const auto named = model.named_parameters();
  const auto value = [&](const char* name) { return named[name].flatten()[0].item<double>(); };
  for (const Row& row : rows) {
    arena.grads().fill_(1);
    const std::vector<double> before{value("head.weight"), value("encoder.layers.1.weight"),
                                     value("encoder.layers.0.weight"),
                                     value("encoder.embedding.weight"), value("head.bias")};
    const double lr = learning_rate(schedule, options.lr, {.step = row.step - 1, .total_steps = 6});
    optimizer->step(arena, {.lr = lr, .number = row.step});
    EXPECT_NEAR(before[0] - value("head.weight"), row.head, 1e-6) << row.step;
    EXPECT_NEAR(before[1] - value("encoder.layers.1.weight"), row.layer1, 1e-6) << row.step;
    EXPECT_NEAR(before[2] - value("encoder.layers.0.weight"), row.layer0, 1e-6) << row.step;
    EXPECT_NEAR(before[3] - value("encoder.embedding.weight"), row.embedding, 1e-6) << row.step;
    EXPECT_NEAR(before[4] - value("head.bias"), row.head, 1e-6) << row.step;
  }
}

TEST(LayerDecay, IsToldAsATableOfRates) {
  std::vector<TensorName> tensors;
  for (const auto& name : kBert) tensors.push_back({name});
  const OptimOptions options{.groups = {"head.output.* lr_scale=2", "*.segments.* lr_scale=0.5"},
                             .layer_decay = 0.5};
  EXPECT_EQ(rates_text(options, tensors),
            "2: head.output; 1: encoder.final_norm, head.pooler; 0.5: encoder.layers.1; "
            "0.25: encoder.layers.0; 0.125: encoder.embedding, encoder.positions, "
            "encoder.embedding_norm; 0.0625: encoder.segments");
  EXPECT_EQ(rate_table(options, tensors)[1].num_tensors, 2);
  EXPECT_EQ(rates_text({.layer_decay = 0.8}, tensors),
            "1: encoder.final_norm, head.pooler, head.output; 0.8: encoder.layers.1; "
            "0.64: encoder.layers.0; 0.512: encoder.embedding, encoder.positions, "
            "encoder.segments, encoder.embedding_norm");
}

TEST(LayerDecay, OfOneChangesNoSettings) {
  std::vector<TensorName> tensors;
  for (const auto& name : kBert) tensors.push_back({name});
  for (const auto& settings : settings_of(OptimOptions{}, {}, tensors)) {
    EXPECT_EQ(settings.lr_scale, 1);
  }
}

TEST(LayerDecay, NeedsLayers) {
  struct Flat : torch::nn::Module {
    Flat() { register_parameter("weight", torch::ones({2, 2})); }
  } model;
  const Arena arena(model);
  EXPECT_THROW(make_optimizer({.layer_decay = 0.9}, arena), Error);
}

}  // namespace
}  // namespace stretto::optim
