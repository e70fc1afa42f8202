#include "train/calibration.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nn/linear.h"
#include "tests/base/failure.h"
#include "tests/train/bare_task.h"
#include "tests/train/pair_source.h"

namespace stretto::train {
namespace {

/// A small Transformer whose validation is the loss of a batch.
class CalibratedTask : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *model_; }
  Sums loss(const Prepared& batch, const StepContext&) override {
    return sums(model_->loss(batch, {}).loss_sum, batch);
  }
  bool can_validate() const override { return has_data; }
  Validation validate() override {
    was_training = model_->is_training();
    return {.scores = {{.name = "loss", .value = loss_of_batch()}}};
  }
  double loss_of_batch() {
    const at::NoGradGuard no_grad;
    return model_->loss(source_.load(0, 0), {}).loss_sum.item<double>();
  }

  bool has_data = true, was_training = true;

 private:
  static constexpr int64_t kPieces = 20;
  std::shared_ptr<models::Seq2SeqModel> model_ = stretto::test::small_transformer(2, kPieces);
  stretto::test::PairSource source_{
      {.batches = 2, .pairs = 6, .vocabulary = kPieces, .shortest = 3, .lengths = 5}};
};

TEST(Calibration, SeesEveryLinearMapOutsideOfTraining) {
  CalibratedTask task;
  const auto inputs = calibrate(task);
  EXPECT_FALSE(task.was_training);
  int64_t num_maps = 0;
  for (const auto& module : task.model().named_modules("", /*include_self=*/false)) {
    const auto* map = dynamic_cast<const nn::LinearImpl*>(module.value().get());
    if (map == nullptr) continue;
    ++num_maps;
    const auto found = inputs.find(module.key() + ".weight");
    ASSERT_NE(found, inputs.end()) << module.key();
    int64_t rows = 0;
    for (const auto& seen : found->second) rows += seen.count;
    EXPECT_GE(rows, map->weight.size(0)) << module.key();
  }
  EXPECT_GT(num_maps, 4);
}

TEST(Calibration, IsTheSameEachTime) {
  CalibratedTask task;
  const auto first = calibrate(task), second = calibrate(task);
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [name, inputs] : first) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(at::equal(inputs[i].moments, second.at(name)[i].moments)) << name;
    }
  }
}

TEST(Calibration, NeedsValidationData) {
  CalibratedTask task;
  task.has_data = false;
  stretto::testing::failure(ExitCode::kUsage, [&] { calibrate(task); });
}

}  // namespace
}  // namespace stretto::train
