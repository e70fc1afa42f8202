#include "runs/merged_lora.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "nn/adapter.h"
#include "nn/linear.h"
#include "nn/time_convolution.h"
#include "runs/checkpoint_tensors.h"
#include "runs/module_weights.h"
#include "runs/taken_weights.h"
#include "tests/base/temp_dir.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kIn = 6, kOut = 12;

/// `map`, merged of three, and `plain`.
struct LoraNet : torch::nn::Module {
  explicit LoraNet(const nn::LoraOptions& lora = {}, uint64_t seed = 1) {
    const nn::Init init = nn::Init(seed, at::kCPU).with_lora(lora);
    map = register_module("map",
                          nn::Linear(init.child("map"), kIn, kOut, nn::LinearOptions{.parts = 3}));
    plain = register_module("plain", nn::Linear(init.child("plain"), kOut, 2, nn::LinearOptions{}));
  }
  at::Tensor forward(const at::Tensor& x) const { return plain->forward(map->forward(x)); }
  nn::Linear map{nullptr}, plain{nullptr};
};

const nn::LoraOptions kLora{.rank = 2, .alpha = 8, .maps = {"map"}};

class MergedLora : public ::testing::Test {
 protected:
  MergedLora() {
    const torch::NoGradGuard no_grad;
    net_.map->lora->b.copy_(torch::arange(kOut * 2).view({kOut, 2}).to(torch::kFloat).sin());
  }

  /// A file of the net's tensors, after `change`.
  fs::path save(torch::nn::Module& module,
                const std::function<void(std::vector<store::TensorView>&)>& change = {}) {
    std::vector<store::TensorView> views;
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      kept_.push_back(tensor.detach().contiguous());
      views.push_back(
          {name,
           store::DType::kF32,
           tensor.sizes().vec(),
           {static_cast<const char*>(kept_.back().const_data_ptr()), kept_.back().nbytes()}});
    };
    for (const auto& item : module.named_parameters()) add(item.key(), item.value());
    for (const auto& item : module.named_buffers()) add(item.key(), item.value());
    if (change) change(views);
    const fs::path path = dir_.path() / (std::to_string(count_++) + ".safetensors");
    store::write_safetensors(path, views, {});
    return path;
  }

  LoraNet net_{kLora};
  stretto::testing::TempDir dir_;
  std::vector<at::Tensor> kept_;
  int count_ = 0;
};

TEST_F(MergedLora, LoadsIntoTheModelWithoutItAndComputesTheSame) {
  const store::SafetensorsFile file(save(net_));
  EXPECT_TRUE(has_lora(file));
  const auto merged = merge_lora(file, "file");
  EXPECT_EQ(merged.num_merged, 1);
  EXPECT_FALSE(has_lora(merged.file));
  LoraNet other({}, /*seed=*/9);
  load_weights(merged.file, "file", other);
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::arange(5 * kIn).view({5, kIn}).to(torch::kFloat).cos();
  EXPECT_TRUE(torch::allclose(other.forward(x), net_.forward(x), 1e-6, 1e-6));
  EXPECT_FALSE(torch::allclose(other.map->weight, net_.map->weight, 1e-2, 1e-2));
  EXPECT_TRUE(torch::equal(other.plain->weight, net_.plain->weight));
}

TEST_F(MergedLora, OfAFileWithoutItIsTheFile) {
  LoraNet plain;
  const store::SafetensorsFile file(save(plain));
  EXPECT_FALSE(has_lora(file));
  const auto merged = merge_lora(file, "file");
  EXPECT_EQ(merged.num_merged, 0);
  ASSERT_EQ(merged.file.tensors().size(), file.tensors().size());
  EXPECT_EQ(merged.file.find("map.weight")->bytes.data(), file.find("map.weight")->bytes.data());
}

TEST_F(MergedLora, LetsARunBeginFromAnother) {
  const at::Tensor x = torch::arange(5 * kIn).view({5, kIn}).to(torch::kFloat).cos();
  LoraNet plain({}, /*seed=*/5);
  const torch::NoGradGuard no_grad;
  const at::Tensor of_lora = net_.forward(x), of_plain = plain.forward(x);
  struct Row {
    torch::nn::Module& from;
    const at::Tensor& want;
  };
  for (const Row& row : {Row{net_, of_lora}, Row{plain, of_plain}}) {
    const store::SafetensorsFile file(save(row.from));
    for (const int64_t rank : {0, 2, 4}) {
      nn::LoraOptions lora = kLora;
      lora.rank = rank;
      lora.alpha = 16;
      LoraNet net(lora, /*seed=*/9);
      const at::Tensor own_parts = rank > 0 ? net.map->lora->parts.clone() : at::Tensor();
      optim::Arena arena(net);
      const auto names = weights_to_begin_with(file, "file", arena, LoraValues::kNames);
      require_weights_fit(names.file, "file", arena);
      const auto weights = weights_to_begin_with(file, "file", arena, LoraValues::kAll);
      EXPECT_EQ(weights.added,
                rank == 0 ? std::set<std::string>{}
                          : (std::set<std::string>{"map.lora_a", "map.lora_b", "map.lora_parts"}));
      load_weights(weights.file, "file", arena);
      EXPECT_TRUE(torch::allclose(net.forward(x), row.want, 1e-5, 1e-5)) << rank;
      if (rank == 0) continue;
      EXPECT_EQ(net.map->lora->b.abs().max().item<float>(), 0);
      EXPECT_GT(net.map->lora->a.abs().max().item<float>(), 0);
      EXPECT_TRUE(torch::equal(net.map->lora->parts, own_parts)) << "its own alpha";
    }
  }
}

/// A convolution of three taps, weight-normalised.
struct ConvolutionNet : torch::nn::Module {
  explicit ConvolutionNet(const nn::LoraOptions& lora = {}, uint64_t seed = 1) {
    const nn::Init init = nn::Init(seed, at::kCPU).with_lora(lora);
    map = register_module("map", nn::TimeConvolution(init.child("map"), kIn, kOut,
                                                     nn::TimeConvolutionOptions{.kernel = 3}));
  }
  nn::TimeConvolution map{nullptr};
};

TEST_F(MergedLora, OfAConvolutionChangesItsDirectionsAndKeepsItsGains) {
  const torch::NoGradGuard no_grad;
  ConvolutionNet net(kLora);
  net.map->lora->b.copy_(torch::arange(kOut * 2).view({kOut, 2}).to(torch::kFloat).sin());
  const at::Tensor want = net.map->effective().weight;
  const store::SafetensorsFile file(save(net));
  const auto merged = merge_lora(file, "file");
  EXPECT_EQ(merged.num_merged, 1);
  ConvolutionNet other({}, /*seed=*/9);
  load_weights(merged.file, "file", other);
  EXPECT_TRUE(torch::allclose(other.map->effective().weight, want, 1e-6, 1e-6));
  EXPECT_FALSE(torch::allclose(other.map->weight, net.map->weight, 1e-2, 1e-2));
  EXPECT_TRUE(torch::equal(other.map->gain, net.map->gain));

  nn::LoraOptions wider = kLora;
  wider.rank = 4;
  ConvolutionNet next(wider, /*seed=*/9);
  optim::Arena arena(next);
  const auto weights = weights_to_begin_with(file, "file", arena, LoraValues::kAll);
  load_weights(weights.file, "file", arena);
  EXPECT_TRUE(torch::allclose(next.map->effective().weight, want, 1e-6, 1e-6));
  EXPECT_EQ(next.map->lora->b.abs().max().item<float>(), 0);
}

/// A part with a residual connection, of the name `part`.
struct AdapterNet : torch::nn::Module {
  explicit AdapterNet(const nn::AdapterOptions& options, uint64_t seed = 1) {
    const nn::Init init = nn::Init(seed, at::kCPU).with_adapter(options);
    part = register_module("part", std::make_shared<torch::nn::Module>());
    plain =
        register_module("plain", nn::Linear(init.child("plain"), kIn, kIn, nn::LinearOptions{}));
    adapter = nn::make_adapter(*part, init.child("part"), kIn);
  }
  std::shared_ptr<torch::nn::Module> part;
  nn::Linear plain{nullptr};
  nn::Adapter adapter{nullptr};
};

TEST_F(MergedLora, LetsARunBeginWithNewAdaptersOrWithThoseOfTheOther) {
  const torch::NoGradGuard no_grad;
  AdapterNet with({.dim = 2}, /*seed=*/5), without({}, /*seed=*/5);
  with.adapter->up->weight.fill_(0.5);
  struct Row {
    torch::nn::Module& from;
    float up;
    int64_t new_adapters;
  };
  for (const Row& row : {Row{with, 0.5f, 0}, Row{without, 0.0f, 1}}) {
    const store::SafetensorsFile file(save(row.from));
    AdapterNet net({.dim = 2}, /*seed=*/9);
    const at::Tensor own_down = net.adapter->down->weight.clone();
    optim::Arena arena(net);
    const auto names = weights_to_begin_with(file, "file", arena, LoraValues::kNames);
    require_weights_fit(names.file, "file", arena);
    const auto weights = weights_to_begin_with(file, "file", arena, LoraValues::kAll);
    EXPECT_EQ(weights.num_new_adapters, row.new_adapters);
    EXPECT_EQ(std::ssize(weights.added), 4 * row.new_adapters);
    load_weights(weights.file, "file", arena);
    EXPECT_TRUE(torch::equal(net.plain->weight, with.plain->weight));
    EXPECT_EQ(net.adapter->up->weight.min().item<float>(), row.up);
    EXPECT_EQ(torch::equal(net.adapter->down->weight, own_down), row.new_adapters == 1);
  }
}

TEST_F(MergedLora, RefusesAdaptersThatTheModelHasNotOrHasInAnotherWidth) {
  AdapterNet with({.dim = 2});
  const store::SafetensorsFile file(save(with));
  for (const int64_t dim : {0, 3}) {
    AdapterNet net({.dim = dim});
    optim::Arena arena(net);
    const auto weights = weights_to_begin_with(file, "file", arena, LoraValues::kNames);
    const TakenWeights all_but_heads{.entries = {}, .replaceable = {"head.*"}};
    for (const bool some : {false, true}) {
      try {
        if (some) {
          require_some_weights_fit(weights.file, "file", arena, all_but_heads);
        } else {
          require_weights_fit(weights.file, "file", arena);
        }
        ADD_FAILURE() << "taken, though it has other adapters: " << dim;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kBadData);
        EXPECT_NE(std::string(error.what()).find("adapter.down.weight"), std::string::npos);
        EXPECT_NE(error.advice().find("[model.adapter]"), std::string::npos) << error.advice();
      }
    }
    if (dim > 0) continue;
    const TakenWeights everything_else{.entries = {"*"}};
    EXPECT_EQ(require_some_weights_fit(weights.file, "file", arena, everything_else).num_taken, 2);
  }
}

TEST_F(MergedLora, RefusesTensorsThatDoNotFitTogether) {
  const auto find = [](std::vector<store::TensorView>& views, const std::string& name) {
    return std::find_if(views.begin(), views.end(),
                        [&](const auto& view) { return view.name == name; });
  };
  const auto refused = [&](const std::function<void(std::vector<store::TensorView>&)>& change) {
    const store::SafetensorsFile file(save(net_, change));
    try {
      merge_lora(file, "file");
    } catch (const Error& error) {
      return error.code() == ExitCode::kBadData &&
             std::string(error.what()).find("`map.weight`") != std::string::npos;
    }
    return false;
  };
  for (const char* missing : {"map.weight", "map.lora_a", "map.lora_b", "map.lora_parts"}) {
    EXPECT_TRUE(refused([&](auto& views) { views.erase(find(views, missing)); })) << missing;
  }
  EXPECT_TRUE(refused([&](auto& views) { find(views, "map.lora_b")->shape = {2, kOut}; }));
  EXPECT_TRUE(refused([&](auto& views) { find(views, "map.lora_a")->shape = {4, 9}; }));
  EXPECT_TRUE(refused([&](auto& views) { find(views, "map.lora_a")->shape = {36}; }));
  EXPECT_TRUE(refused([&](auto& views) { find(views, "map.lora_parts")->shape = {2, 3}; }));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& numbers :
       std::vector<std::vector<float>>{{4, 4, 4, 4, 5, 4},
                                       {4, 4, 4, 4, 0, 4},
                                       {-4, 4, 8, 4, 8, 4},
                                       {4, 4, 4, 4, 4, 5},
                                       {4, nan, 4, nan, 4, nan},
                                       {1e30f, 4, 4, 4, 4, 4},
                                       {nan, 4, 4, 4, 4, 4},
                                       {3.5f, 4, 4.5f, 4, 4, 4}}) {
    EXPECT_TRUE(refused([&](auto& views) {
      find(views, "map.lora_parts")->bytes = {reinterpret_cast<const char*>(numbers.data()), 24};
    }));
  }
}

}  // namespace
}  // namespace stretto::runs
