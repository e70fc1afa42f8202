#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "compress/quantise.h"
#include "kernels/quantised/quantised.h"
#include "nn/compressed.h"
#include "nn/linear.h"
#include "optim/arena.h"
#include "runs/average.h"
#include "runs/merged_lora.h"
#include "runs/module_weights.h"
#include "runs/packed_checkpoint.h"
#include "runs/unpacked_weights.h"
#include "store/checkpoint.h"
#include "store/quantised_file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;
using stretto::testing::noise;

constexpr store::QuantFormat kPackedRows{.bits = 8};
constexpr store::QuantFormat kPackedGroups{
    .bits = 4, .symmetric = false, .scope = store::QuantScope::kGroup, .group_size = 16};

/// A linear map, and a filter that no operator takes as codes.
struct PackedNet : torch::nn::Module {
  PackedNet() {
    map = register_module("map", nn::Linear(nn::Init(1, at::kCPU).child("map"), 32, 24));
    filters = register_parameter("filters", at::zeros({4, 2, 8}));
  }
  nn::Linear map{nullptr};
  at::Tensor filters;
};

/// A model file of such a net, packed, and the checkpoint that was made of it.
class PackedRun : public ::testing::Test {
 protected:
  explicit PackedRun(const store::QuantFormat& format = kPackedGroups) { pack(format); }

  void pack(const store::QuantFormat& format) {
    from_.step = 30;
    from_.state_json = "{}";
    const store::SafetensorsFile file(
        {view("map.weight", weight_), view("map.bias", bias_), view("filters", filters_)});
    plan_ = store::plan_quantised(file.tensors(), {.format = format}, "the model");
    model_ = compress::quantise_model(file, plan_, compress::Rounding::kLeastError);
  }

  static store::TensorView view(const std::string& name, const at::Tensor& tensor) {
    return {name,
            store::DType::kF32,
            tensor.sizes().vec(),
            {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
  }

  /// The packed file as if it had been read.
  store::SafetensorsFile file() const {
    return store::SafetensorsFile(model_.tensors(),
                                  {{std::string(store::kQuantisedKey), model_.metadata()}});
  }
  at::Tensor unpacked(const std::string& name) const {
    return compress::dequantise(model_.packed.at(name).view());
  }
  fs::path save() const { return save_packed(dir_.path(), from_, plan_, model_, identity_); }

  const at::Tensor weight_ = noise({24, 32}, 1), bias_ = noise({24}, 2),
                   filters_ = noise({4, 2, 8}, 3);
  store::QuantPlan plan_;
  compress::QuantisedModel model_;
  store::LoadedCheckpoint from_;
  const RunIdentity identity_{.run_id = "packed", .config_hash = "c0ffee"};
  const stretto::testing::TempDir dir_;
};

TEST_F(PackedRun, FillsAModelWithTheNumbersThatItsCodesMean) {
  PackedNet net;
  load_weights(file(), "here", net, "", PackedAs::kNumbers);
  EXPECT_TRUE(at::equal(net.map->weight, unpacked("map.weight")));
  EXPECT_TRUE(at::equal(net.filters, unpacked("filters")));
  EXPECT_TRUE(at::equal(net.map->bias, bias_));
  EXPECT_FALSE(kernels::stood_for(net.map->weight));
}

TEST_F(PackedRun, CodesAreMissedInAFileThatHasNone) {
  const store::SafetensorsFile plain(
      {view("map.weight", weight_), view("map.bias", bias_), view("filters", filters_)});
  PackedNet net;
  const auto said = [&](const store::SafetensorsFile& from, PackedAs packed) {
    ::testing::internal::CaptureStderr();
    load_weights(from, "here", net, "", packed);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string warning = "changes nothing: the weights of here are not packed";
  EXPECT_NE(said(plain, PackedAs::kCodes).find(warning), std::string::npos);
  EXPECT_TRUE(at::equal(net.map->weight, weight_));
  EXPECT_EQ(said(plain, PackedAs::kFaster), "");
  EXPECT_EQ(said(plain, PackedAs::kNumbers), "") << "all weights are numbers, as asked";
  EXPECT_EQ(said(file(), PackedAs::kCodes).find(warning), std::string::npos);
}

TEST_F(PackedRun, StaysCodesWhereAModuleTakesThem) {
  for (const auto& format : {kPackedRows, kPackedGroups}) {
    pack(format);
    PackedNet net;
    const int64_t before = nn::bytes_in_memory(net);
    load_weights(file(), "here", net, "", PackedAs::kCodes);
    ASSERT_TRUE(kernels::stood_for(net.map->weight));
    EXPECT_TRUE(at::equal(kernels::dense_weight(net.map->weight), unpacked("map.weight")));
    EXPECT_TRUE(at::equal(net.filters, unpacked("filters")));
    EXPECT_LT(nn::bytes_in_memory(net), before);
    const torch::NoGradGuard no_grad;
    const at::Tensor x = noise({5, 32}, 4);
    const at::Tensor wanted = at::linear(x, unpacked("map.weight"), bias_);
    // Rows are rounded to 8 bits.
    EXPECT_TRUE(at::allclose(net.map->forward(x), wanted, 0.03, 0.2));
    load_weights(file(), "here", net, "", PackedAs::kNumbers);
    EXPECT_TRUE(at::equal(net.map->weight, unpacked("map.weight"))) << "of the same model again";
  }
}

TEST(PackedWeights, HaveTheNamesOfTheirKey) {
  EXPECT_EQ(packed_as("auto"), PackedAs::kFaster);
  EXPECT_EQ(packed_as("codes"), PackedAs::kCodes);
  EXPECT_EQ(packed_as("numbers"), PackedAs::kNumbers);
}

TEST_F(PackedRun, ListsWhatTheModelHasBeyondIt) {
  PackedNet net;
  net.register_parameter("filters2", at::zeros({1}));
  const auto said = stretto::testing::failure(ExitCode::kBadData, [&] {
                      load_weights(file(), "here", net);
                    }).message();
  EXPECT_NE(said.find("`filters2` is missing"), std::string::npos) << said;
}

TEST_F(PackedRun, LeavesOutAPartByItsOwnName) {
  nn::Linear map(nn::Init(1, at::kCPU).child("map"), 32, 24);
  struct Holder : torch::nn::Module {
    explicit Holder(nn::Linear map) { register_module("map", std::move(map)); }
  };
  Holder holder(map);
  const auto said = stretto::testing::failure(ExitCode::kBadData, [&] {
                      load_weights(file(), "here", holder);
                    }).message();
  EXPECT_NE(said.find("`filters` is not in the model"), std::string::npos) << said;
  EXPECT_EQ(said.find(".codes"), std::string::npos) << said;
  load_weights(file(), "here", holder, "filters", PackedAs::kNumbers);
  EXPECT_TRUE(at::equal(map->weight, unpacked("map.weight")));
}

TEST_F(PackedRun, IsNumbersForExportsAndForRunsThatBeginWithIt) {
  const store::SafetensorsFile packed = file();
  const UnpackedWeights all = unpack_weights(packed, "here");
  ASSERT_EQ(all.file.tensors().size(), 3U);
  const MadeWeights merged = merge_lora(packed, "here");
  for (const auto* made : {&all.file, &merged.file}) {
    const store::TensorView* found = made->find("map.weight");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->shape, (std::vector<int64_t>{24, 32}));
    const at::Tensor numbers = torch::from_blob(const_cast<char*>(found->bytes.data()), {24, 32});
    EXPECT_TRUE(at::equal(numbers, unpacked("map.weight")));
    EXPECT_EQ(made->find("map.weight.codes"), nullptr);
  }
  PackedNet net;
  optim::Arena arena(net, optim::Arena::Gradients::kNone);
  for (const auto values : {LoraValues::kAll, LoraValues::kNames}) {
    const auto begun = weights_to_begin_with(packed, "here", arena, values);
    EXPECT_NE(begun.file.find("filters"), nullptr);
    EXPECT_TRUE(begun.added.empty());
  }
}

TEST_F(PackedRun, HasTheSizeThatWasPredicted) {
  from_.provenance.tokenizer = {{"joint.model", "aaaa"}};
  const fs::path saved = save();
  EXPECT_EQ(fs::file_size(saved / "model.safetensors"),
            packed_model_bytes(plan_, identity_, from_.step));
  const auto loaded = store::CheckpointStore::load(saved);
  EXPECT_EQ(loaded.step, 30);
  EXPECT_EQ(loaded.run_id, "packed");
  EXPECT_EQ(loaded.provenance.tokenizer, from_.provenance.tokenizer);
  PackedNet net;
  load_weights(loaded, net, "", PackedAs::kNumbers);
  EXPECT_TRUE(at::equal(net.map->weight, unpacked("map.weight")));
}

TEST_F(PackedRun, IsRefusedWithAnyByteFlippedAndCutShort) {
  const fs::path path = save() / "model.safetensors";
  const std::string sound = read_file(path);
  const auto refused = [&](const std::string& bytes) {
    fs::remove(path);
    dir_.write(fs::relative(path, dir_.path()).string(), bytes);
    stretto::testing::failure(ExitCode::kBadData,
                              [&] { store::CheckpointStore::load(path.parent_path()); });
  };
  for (size_t at = 8; at < sound.size(); at += 37) {
    SCOPED_TRACE(at);
    std::string bytes = sound;
    bytes[at] ^= 1;
    refused(bytes);
  }
  refused(sound.substr(0, sound.size() - 1));
}

TEST_F(PackedRun, IsNeitherAveragedNorTrainedFurther) {
  const fs::path saved = save();
  const auto average = stretto::testing::failure(
      ExitCode::kUsage, [&] { average_checkpoints(dir_.path(), {saved}, identity_, "mean"); });
  EXPECT_NE(average.message().find("average first"), std::string::npos) << average.message();
  PackedNet net;
  optim::Arena arena(net);
  Checkpointer checkpointer(dir_.path(), identity_, KeepOptions{});
  const auto resumed = stretto::testing::failure(
      ExitCode::kUsage, [&] { checkpointer.restore(arena, std::vector<optim::StateTensor>{}); });
  EXPECT_NE(resumed.message().find("train.init_from"), std::string::npos) << resumed.message();
}

}  // namespace
}  // namespace stretto::runs
