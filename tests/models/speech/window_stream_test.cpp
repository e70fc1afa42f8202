#include "models/speech/window_stream.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/gradcheck.h"

namespace stretto::models {
namespace {

using stretto::testing::noise;

/// Sums of windows with weights of their places, and zeroes beyond the ends.
at::Tensor windowed_sums(const at::Tensor& rows, const RowWindow& window) {
  std::vector<at::Tensor> sums{at::empty({0, rows.size(1)})};
  for (int64_t t = 0; t * window.stride < rows.size(0); ++t) {
    at::Tensor sum = at::zeros({1, rows.size(1)});
    for (int64_t place = -window.left; place <= window.right; ++place) {
      const int64_t row = t * window.stride + place;
      if (row < 0 || row >= rows.size(0)) continue;
      sum = sum + static_cast<double>(place + window.left + 1) * rows.narrow(0, row, 1);
    }
    sums.push_back(sum);
  }
  return at::cat(sums);
}

TEST(WindowStream, GivesTheRowsOfTheWholeAsSoonAsTheyAreCertain) {
  // Windows on both sides, ahead alone, behind alone, of one row, and with gaps between them.
  const std::vector<RowWindow> windows{{.left = 2, .right = 3},
                                       {.left = 0, .right = 4, .stride = 2},
                                       {.left = 5, .right = 0, .stride = 3},
                                       {},
                                       {.left = 0, .right = 0, .stride = 4},
                                       {.left = 1, .right = 1, .stride = 5}};
  for (const RowWindow& window : windows) {
    for (const int64_t length : {0, 1, 2, 7, 24}) {
      for (const int64_t piece : {1, 2, 5, 30}) {
        SCOPED_TRACE(std::to_string(window.left) + " to " + std::to_string(window.right) +
                     ", stride " + std::to_string(window.stride) + ", " + std::to_string(length) +
                     " rows in pieces of " + std::to_string(piece));
        const at::Tensor rows = noise({length, 3});
        int64_t longest = 0;
        WindowStream stream(
            window,
            [&](const at::Tensor& some) {
              longest = std::max(longest, some.size(0));
              return windowed_sums(some, window);
            },
            at::empty({0, 3}));
        std::vector<at::Tensor> parts;
        int64_t given = 0;
        for (int64_t t = 0; t < length; t += piece) {
          const int64_t end = std::min(t + piece, length);
          parts.push_back(stream.push(rows.slice(0, t, end)));
          given += parts.back().size(0);
          const int64_t certain = end - 1 - window.right;
          EXPECT_EQ(given, certain < 0 ? 0 : certain / window.stride + 1) << end;
        }
        parts.push_back(stream.finish());
        EXPECT_TRUE(at::allclose(at::cat(parts), windowed_sums(rows, window), 1e-5, 1e-5));
        // Rows that no window to come sees are forgotten.
        EXPECT_LE(longest, window.left + window.right + 2 * window.stride + piece);
      }
    }
  }
}

TEST(WindowStream, RefusesRowsOfAnotherWidth) {
  WindowStream stream(
      {}, [](const at::Tensor& rows) { return rows; }, at::empty({0, 3}));
  EXPECT_THROW(stream.push(at::ones({2, 4})), c10::Error);
}

}  // namespace
}  // namespace stretto::models
