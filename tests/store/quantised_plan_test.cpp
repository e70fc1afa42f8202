#include "store/quantised_plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "store/quantised_file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

constexpr QuantFormat kPlanGroups{.bits = 4, .scope = QuantScope::kGroup, .group_size = 32};

std::vector<TensorView> planned_model() {
  return {{"table", DType::kF32, {100, 64}, {}},  {"map.weight", DType::kF32, {32, 64}, {}},
          {"map.bias", DType::kF32, {32}, {}},    {"conv.weight", DType::kF32, {8, 4, 3}, {}},
          {"start", DType::kF32, {1, 1, 64}, {}}, {"steps", DType::kI64, {2, 32}, {}}};
}

const PlannedTensor& planned_of(const QuantPlan& plan, const std::string& name) {
  for (const auto& tensor : plan.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::logic_error(name);
}

std::string plan_refusal(const QuantRequest& request) {
  return stretto::testing::failure(ExitCode::kUsage,
                                   [&] { plan_quantised(planned_model(), request, "the model"); })
      .message();
}

TEST(QuantPlan, PacksMatricesAndLeavesTheRest) {
  const QuantPlan plan = plan_quantised(
      planned_model(),
      {.format = kPlanGroups, .kept = {"conv.*"}, .others = {{"table", {.bits = 8}}}}, "the model");
  ASSERT_EQ(plan.tensors.size(), 6U);
  EXPECT_EQ(planned_of(plan, "map.weight").format, kPlanGroups);
  EXPECT_EQ(planned_of(plan, "map.weight").bytes, 32U * 64 / 2 + 32 * 2 * 2);
  EXPECT_DOUBLE_EQ(planned_of(plan, "map.weight").bits_per_weight(), 4.5);
  EXPECT_EQ(planned_of(plan, "table").format, QuantFormat{.bits = 8});
  for (const char* name : {"map.bias", "conv.weight", "start", "steps"}) {
    EXPECT_FALSE(planned_of(plan, name).format) << name;
  }
  EXPECT_EQ(planned_of(plan, "map.bias").bytes, 32U * 4);
  EXPECT_EQ(planned_of(plan, "steps").bytes, 64U * 8);
  uint64_t sum = 0;
  for (const auto& tensor : plan.tensors) sum += tensor.bytes;
  EXPECT_EQ(plan.bytes(), sum);
  EXPECT_DOUBLE_EQ(plan.bits_per_weight(),
                   8.0 * static_cast<double>(sum) / static_cast<double>(plan.num_weights()));
}

TEST(QuantPlan, KnowsTheSizeOfTheFileToTheByte) {
  const stretto::testing::TempDir dir;
  for (const bool symmetric : {true, false}) {
    const QuantFormat format{.bits = 3, .symmetric = symmetric};
    const QuantPlan plan = plan_quantised(planned_model(), {.format = format}, "the model");
    const std::map<std::string, std::string> metadata{
        {"run_id", "r"}, {std::string(kQuantisedKey), plan.metadata()}};
    std::vector<std::string> bytes;
    std::map<std::string, QuantisedTensor> packed;
    bytes.reserve(plan.tensors.size());
    std::vector<TensorView> tensors;
    for (const auto& planned : plan.tensors) {
      if (!planned.format) {
        bytes.emplace_back(planned.bytes, '\0');
        tensors.push_back({planned.name, planned.dtype, planned.shape, bytes.back()});
        continue;
      }
      const QuantLayout layout = layout_of(format, planned.shape);
      QuantisedValues values;
      values.codes.resize(static_cast<size_t>(layout.rows * layout.columns));
      values.scales.resize(static_cast<size_t>(layout.num_scales()));
      if (!symmetric) values.zeros.resize(values.scales.size());
      packed.emplace(planned.name, pack(format, planned.shape, values));
    }
    for (const auto& [name, tensor] : packed) {
      for (const auto& part : stored_tensors(name, tensor.view())) tensors.push_back(part);
    }
    const auto path = dir / (symmetric ? "symmetric" : "asymmetric");
    write_safetensors(path, tensors, metadata);
    EXPECT_EQ(std::filesystem::file_size(path), plan.file_bytes(metadata));
    EXPECT_EQ(QuantisedTensors(SafetensorsFile(path), "f").tensors().size(), packed.size());
  }
}

TEST(QuantPlan, RefusesWhatCannotBePackedAsAsked) {
  const std::string said = plan_refusal({.format = kPlanGroups});
  EXPECT_NE(said.find("the model: 1 tensor cannot be packed as asked: `conv.weight`: groups of 32 "
                      "do not divide its 12 columns"),
            std::string::npos)
      << said;
  EXPECT_NE(plan_refusal({.format = {.bits = 7}}).find("7 bits"), std::string::npos);
}

TEST(QuantPlan, RefusesPatternsWithoutEffectAndRequestsForNothing) {
  EXPECT_NE(plan_refusal({.kept = {"nothing.*"}}).find("`nothing.*` matches no tensor"),
            std::string::npos);
  EXPECT_NE(plan_refusal({.others = {{"map.bias", {.bits = 4}}}}).find("matches no tensor"),
            std::string::npos)
      << "a bias is not packed";
  EXPECT_NE(plan_refusal({.kept = {"*"}}).find("nothing is left to pack"), std::string::npos);
}

TEST(QuantPlan, LeavesWhatTellsThePartsOfLoraApart) {
  const std::vector<TensorView> tensors{{"map.weight", DType::kF32, {32, 64}, {}},
                                        {"map.lora_parts", DType::kF32, {3, 2}, {}}};
  const QuantPlan plan = plan_quantised(tensors, {.format = {.bits = 8}}, "the model");
  EXPECT_TRUE(planned_of(plan, "map.weight").format);
  EXPECT_FALSE(planned_of(plan, "map.lora_parts").format)
      << "they are counts of rows, and a factor";
}

TEST(QuantPlan, ShowsEachFormatAndTheSum) {
  const QuantPlan plan = plan_quantised(
      planned_model(),
      {.format = kPlanGroups, .kept = {"conv.*"}, .others = {{"table", {.bits = 8}}}}, "the model");
  const std::string table = plan.table();
  EXPECT_NE(table.find("8 bits, symmetric, a scale for a row: 1 tensor, 6,400 weights, 8.25 bits a "
                       "weight"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("4 bits, symmetric, a scale for 32 columns: 1 tensor"), std::string::npos)
      << table;
  EXPECT_NE(table.find("as they are: 4 tensors"), std::string::npos) << table;
  EXPECT_NE(table.find("of the size in fp32"), std::string::npos) << table;
}

}  // namespace
}  // namespace stretto::store
