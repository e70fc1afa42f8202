#include "families/text/engine/finite_vectors.h"

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
std::string refusal_of(int64_t place, float value) {
  const auto vectors = at::zeros({3, 2}, at::kFloat);
  vectors.data_ptr<float>()[place] = value;
  return testing::failure(ExitCode::kNumeric,
                          [&] { require_finite(vectors, three_lines(), "runs/mine"); })
      .what();
}

TEST(FiniteVectors, AreNotRefused) {
  EXPECT_NO_THROW(require_finite(at::ones({3, 2}), three_lines(), "runs/mine"));
  EXPECT_NO_THROW(require_finite(at::ones({0, 2}), {}, "runs/mine"));
}

TEST(FiniteVectors, AreDemandedOfEveryLine) {
  EXPECT_EQ(refusal_of(3, NAN),
            "a.txt:2: the vector of this line has values that are infinite or NaN, though the "
            "weights of runs/mine are finite");
  for (const float value : {INFINITY, -INFINITY}) {
    EXPECT_TRUE(refusal_of(5, value).starts_with("a.txt:3: ")) << value;
  }
}

}  // namespace
}  // namespace stretto::tasks
