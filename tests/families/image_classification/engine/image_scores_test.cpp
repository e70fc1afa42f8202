#include "families/image_classification/engine/image_scores.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace stretto::tasks {
namespace {

using Models = std::vector<std::shared_ptr<models::ImageModel>>;

/// Logits are the numbers of the first row of pixels of the first channel, times a factor.
class FirstRow : public models::ImageModel {
 public:
  FirstRow(int64_t num_labels, double factor)
      : ImageModel({.init = nn::Init(1, at::kCPU), .num_labels = num_labels}, {}),
        factor_(factor) {}

  at::Tensor forward(const models::ImageInput& input, const models::ForwardContext&) override {
    return input.pixels.select(1, 0).select(1, 0) * factor_;
  }
  double operations(int64_t, int64_t) const override { return 0; }
  at::Tensor first_filters() const override { return {}; }

 private:
  double factor_;
};

/// A view for each list of logits.
at::Tensor views_of(const std::vector<std::vector<double>>& logits) {
  std::vector<at::Tensor> views;
  for (const auto& one : logits) {
    views.push_back(at::tensor(one, at::kDouble).view({1, 1, -1}).expand({3, 2, -1}));
  }
  return at::stack(views);
}

TEST(ImageScores, ViewsAreAveragedInTheirProbabilitiesByTheirWeights) {
  const at::Tensor pixels = views_of({{0, 9, 1}, {4, 0, 0}, {1, 1, 1}, {0, 0, -30}});
  const auto outputs = image_outputs({std::make_shared<FirstRow>(3, 1)}, pixels, {0.25, 0.75});
  const at::Tensor each = pixels.select(1, 0).select(1, 0).softmax(1);
  const at::Tensor want =
      at::stack({each[0] * 0.25 + each[1] * 0.75, each[2] * 0.25 + each[3] * 0.75});
  ASSERT_EQ(outputs.logits.sizes(), want.sizes());
  EXPECT_TRUE(at::allclose(outputs.logits.softmax(1), want, 1e-9, 1e-12));
  EXPECT_TRUE(at::allclose(outputs.logits.exp(), want, 1e-9, 1e-12)) << "of sum 1 already";
}

TEST(ImageScores, ModelsAreAveragedInTheirProbabilities) {
  const at::Tensor pixels = views_of({{0, 2, 1}, {4, 0, 0}});
  const Models models{std::make_shared<FirstRow>(3, 1), std::make_shared<FirstRow>(3, -2)};
  const at::Tensor logits = pixels.select(1, 0).select(1, 0);
  EXPECT_TRUE(at::allclose(image_outputs(models, pixels, {1}).logits.softmax(1),
                           (logits.softmax(1) + (logits * -2).softmax(1)) / 2, 1e-9, 1e-12));
  EXPECT_TRUE(at::equal(image_outputs({models[0]}, pixels, {1}).logits, logits));
}

TEST(ImageScores, APictureIsToldOfWhereALogitOfAnyViewOfAnyModelIsNotFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const at::Tensor pixels = views_of({{0, 2}, {4, 0}, {1, 1}, {0, -infinite}, {0, 1}, {NAN, 0}});
  const Models models{std::make_shared<FirstRow>(2, 1), std::make_shared<FirstRow>(2, 1)};
  EXPECT_TRUE(at::equal(image_outputs(models, pixels, {0.5, 0.5}).overflowed,
                        at::tensor({0.0, 1.0, 1.0}, at::kDouble)));
}

TEST(ImageScores, AreOfThePicturesThatCouldBeRead) {
  train::ScoreTable table(4, kNumImageNumbers);
  for (int64_t i = 0; i < 3; ++i) {
    const auto row = table.row(i);
    row[kImageReadable] = 1;
    row[kImageLoss] = 0.5 * static_cast<double>(i);
    row[kImageRight] = i == 0 ? 1 : 0;
    row[kImageInTop5] = i < 2 ? 1 : 0;
  }
  const auto scores = scores_of_images(table);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_DOUBLE_EQ(scores[0].value, 0.5);
  EXPECT_DOUBLE_EQ(scores[1].value, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores[2].value, 2.0 / 3);
  EXPECT_EQ(num_unreadable(table, 4), 1);
}

}  // namespace
}  // namespace stretto::tasks
