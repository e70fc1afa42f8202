#include "tasks/text_encoder/finite_vectors.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

const std::vector<data::InputLine>& three_lines() {
  static const std::vector<data::InputLine> lines{{.place = "a.txt:1", .text = "a", .problem = ""},
                                                  {.place = "a.txt:2", .text = "b", .problem = ""},
                                                  {.place = "a.txt:3", .text = "c", .problem = ""}};
  return lines;
}

/// What is said of vectors [3, 2] whose value at `place` is `value`.
std::string refusal_of(int64_t place, float value, const torch::nn::Module& model) {
  const auto vectors = at::zeros({3, 2}, at::kFloat);
  vectors.data_ptr<float>()[place] = value;
  return testing::failure(ExitCode::kNumeric,
                          [&] { require_finite(vectors, three_lines(), model, "runs/mine"); })
      .what();
}

TEST(FiniteVectors, AreNotRefused) {
  const torch::nn::LinearImpl model(2, 2);
  EXPECT_NO_THROW(require_finite(at::ones({3, 2}), three_lines(), model, "runs/mine"));
  EXPECT_NO_THROW(require_finite(at::ones({0, 2}), {}, model, "runs/mine"));
}

TEST(FiniteVectors, AreDemandedOfEveryLine) {
  const torch::nn::LinearImpl model(2, 2);
  EXPECT_EQ(refusal_of(3, NAN, model),
            "a.txt:2: the vector of this line has values that are infinite or NaN, though the "
            "weights of runs/mine are finite");
  for (const float value : {INFINITY, -INFINITY}) {
    EXPECT_TRUE(refusal_of(5, value, model).starts_with("a.txt:3: ")) << value;
  }
}

TEST(FiniteVectors, AreNotMadeByAWeightThatIsNamed) {
  torch::nn::LinearImpl model(2, 2);
  const torch::NoGradGuard no_grad;
  model.bias[1] = NAN;
  EXPECT_EQ(refusal_of(0, NAN, model),
            "a.txt:1: the vector of this line has values that are infinite or NaN, and so has "
            "`bias` of runs/mine");
}

}  // namespace
}  // namespace stretto::tasks
