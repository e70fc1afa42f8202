#include "runs/module_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optim/arena.h"
#include "runs/checkpoint_tensors.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::runs {
namespace {

/// A matrix that stands under two names, a vector, and running statistics.
struct Net : torch::nn::Module {
  Net() {
    w = register_parameter("w", at::zeros({2, 3}));
    register_parameter("tied", w);
    b = register_parameter("b", at::zeros({3}));
    mean = register_buffer("mean", at::zeros({3}));
  }
  at::Tensor w, b, mean;
};

using Tensors = std::map<std::string, at::Tensor>;

/// What fits a Net: no number has its exact value in fewer bits than fp32.
Tensors stored() {
  return {{"w", at::arange(6, at::kFloat).view({2, 3}) / 7},
          {"b", at::arange(3, at::kFloat) / 3},
          {"mean", at::arange(3, at::kFloat) / -9}};
}

store::DType stored_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return store::DType::kF64;
    case at::kHalf:
      return store::DType::kF16;
    case at::kBFloat16:
      return store::DType::kBF16;
    case at::kLong:
      return store::DType::kI64;
    default:
      return store::DType::kF32;
  }
}

class ModuleWeights : public ::testing::Test {
 protected:
  store::SafetensorsFile file_of(const Tensors& tensors) {
    std::vector<store::TensorView> views;
    for (const auto& [name, tensor] : tensors) {
      const auto* bytes = static_cast<const char*>(tensor.const_data_ptr());
      views.push_back({.name = name,
                       .dtype = stored_type(tensor),
                       .shape = tensor.sizes().vec(),
                       .bytes = {bytes, static_cast<size_t>(tensor.nbytes())}});
    }
    const auto path = dir_ / (std::to_string(++files_) + ".safetensors");
    store::write_safetensors(path, views, {});
    return store::SafetensorsFile(path);
  }

  std::string refusal(const Tensors& tensors, Net& net) {
    const auto file = file_of(tensors);
    return stretto::testing::failure(ExitCode::kBadData, [&] { load_weights(file, "here", net); })
        .message();
  }

  stretto::testing::TempDir dir_;
  int files_ = 0;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ModuleWeights, FillParametersAndBuffersWhereTheyAre) {
  Net net;
  const void* const place = net.w.const_data_ptr();
  load_weights(file_of(stored()), "here", net);
  EXPECT_TRUE(at::equal(net.w, stored().at("w")));
  EXPECT_TRUE(at::equal(net.b, stored().at("b")));
  EXPECT_TRUE(at::equal(net.mean, stored().at("mean")));
  EXPECT_EQ(net.w.const_data_ptr(), place) << "no arena has taken it";
  EXPECT_TRUE(net.w.requires_grad());
  EXPECT_FALSE(net.w.grad().defined());
}

TEST_F(ModuleWeights, AreThoseThatAnArenaLoads) {
  const auto file = file_of(stored());
  Net net, of_arena;
  load_weights(file, "here", net);
  optim::Arena arena(of_arena, optim::Arena::Gradients::kNone);
  load_weights(file, "here", arena);
  EXPECT_TRUE(at::equal(net.w, of_arena.w));
  EXPECT_TRUE(at::equal(net.b, of_arena.b));
  EXPECT_TRUE(at::equal(net.mean, of_arena.mean));
}

TEST_F(ModuleWeights, TakeTheDtypeThatTheModuleHas) {
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto stored_as : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
      SCOPED_TRACE(std::string(at::toString(stored_as)) + " to " + at::toString(type));
      Tensors tensors = stored();
      for (auto& [name, tensor] : tensors) tensor = tensor.to(stored_as);
      Net net;
      net.to(type);
      load_weights(file_of(tensors), "here", net);
      ASSERT_EQ(net.w.scalar_type(), type);
      EXPECT_TRUE(at::equal(net.w, tensors.at("w").to(type)));
      EXPECT_TRUE(at::equal(net.mean, tensors.at("mean").to(type)));
    }
  }
}

TEST_F(ModuleWeights, MayHaveAnotherDtypeEach) {
  Net net;
  {
    const at::NoGradGuard no_grad;
    net.w.set_data(net.w.to(at::kBFloat16));
  }
  load_weights(file_of(stored()), "here", net);
  EXPECT_TRUE(at::equal(net.w, stored().at("w").to(at::kBFloat16)));
  EXPECT_EQ(net.b.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(net.b, stored().at("b")));
}

TEST_F(ModuleWeights, ThatDoNotFitAreListedTogetherAndNothingIsCopied) {
  Net net;
  Tensors tensors = stored();
  tensors["w"] = at::ones({3, 2});
  tensors.erase("mean");
  tensors["more"] = at::ones({1});
  const std::string said = refusal(tensors, net);
  EXPECT_TRUE(has(said, "here: ")) << said;
  EXPECT_TRUE(has(said, "`w` is [3, 2], the model wants [2, 3]")) << said;
  EXPECT_TRUE(has(said, "`mean` is missing")) << said;
  EXPECT_TRUE(has(said, "`more` is not in the model")) << said;
  EXPECT_EQ(net.b.abs().max().item<float>(), 0);
  tensors["b"] = at::ones({4});
  EXPECT_TRUE(has(refusal(tensors, net), "and 1 tensor more"));
}

TEST_F(ModuleWeights, MayLeaveOutAPartOfTheFileByItsName) {
  Net net;
  Tensors tensors = stored();
  tensors["head.bias"] = at::ones({1});
  EXPECT_TRUE(has(refusal(tensors, net), "`head.bias` is not in the model"));
  load_weights(file_of(tensors), "here", net, "head.*");
  EXPECT_TRUE(at::equal(net.w, stored().at("w")));
  tensors["more"] = at::ones({1});
  const auto file = file_of(tensors);
  EXPECT_THROW(load_weights(file, "here", net, "head.*"), Error);
}

TEST_F(ModuleWeights, OfIntegersAreRefused) {
  Net net;
  Tensors tensors = stored();
  tensors["b"] = at::arange(3, at::kLong);
  const std::string said = refusal(tensors, net);
  EXPECT_TRUE(has(said, "`b` is I64, the model wants floating-point numbers")) << said;
  EXPECT_EQ(net.w.abs().max().item<float>(), 0);
}

TEST_F(ModuleWeights, ThatAreInfiniteOrNaNAreRefusedByName) {
  Net net;
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    Tensors tensors = stored();
    tensors["b"] = tensors["b"].clone();
    tensors["b"].data_ptr<float>()[1] = value;
    const auto file = file_of(tensors);
    const Error error =
        stretto::testing::failure(ExitCode::kNumeric, [&] { load_weights(file, "here", net); });
    EXPECT_STREQ(error.what(), "here: `b` has values that are infinite or NaN") << value;
    EXPECT_TRUE(has(error.advice(), "--checkpoint")) << error.advice();
  }
  Tensors tensors = stored();
  tensors["w"] = at::full_like(tensors["w"], 3e38F);
  load_weights(file_of(tensors), "here", net);  // their sum is infinite, and they are not
}

TEST_F(ModuleWeights, OfACheckpointAreNamedByItsFile) {
  Net net;
  store::LoadedCheckpoint checkpoint;
  checkpoint.directory = "runs/a/checkpoints/step_00000003";
  checkpoint.files.emplace_back("model", file_of(stored()));
  load_weights(checkpoint, net);
  EXPECT_TRUE(at::equal(net.w, stored().at("w")));
  Tensors tensors = stored();
  tensors.erase("b");
  checkpoint.files.clear();
  checkpoint.files.emplace_back("model", file_of(tensors));
  const std::string said = stretto::testing::failure(ExitCode::kBadData, [&] {
                             load_weights(checkpoint, net);
                           }).message();
  EXPECT_TRUE(has(said, "step_00000003/model.safetensors: ")) << said;
  EXPECT_TRUE(has(said, "`b` is missing")) << said;
}

}  // namespace
}  // namespace stretto::runs
