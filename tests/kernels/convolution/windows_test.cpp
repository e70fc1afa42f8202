#include "kernels/convolution/windows.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <string>
#include <vector>

#include "kernels/convolution/convolution_2d.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::Inputs, testing::noise, testing::OwnProducts, testing::Threads;

/// Pictures and the filters that move over them.
struct Picture {
  int64_t count, channels, height, width, filters;
  std::array<int64_t, 2> taps;
  PlaneWindow window;

  at::Tensor x() const { return noise({count, channels, height, width}, 1); }
  at::Tensor weight() const { return noise({filters, channels, taps[0], taps[1]}, 2) * 0.3; }
  std::string name() const {
    return std::to_string(taps[0]) + " x " + std::to_string(taps[1]) + " of " +
           std::to_string(height) + " x " + std::to_string(width) + " by " +
           std::to_string(window.stride) + ", " + std::to_string(filters) + " filters";
  }
};

/// Widths that fill tiles and panels, and that do not; strides above the taps; patches; more places
/// than are summed together, of filters that windows are copied for.
const std::vector<Picture> kPictures{
    {3, 64, 12, 12, 272, {3, 3}, {.stride = 1, .padding = 1}},
    {2, 16, 9, 12, 16, {3, 3}, {.stride = 1, .padding = 1}},
    {3, 5, 8, 7, 35, {3, 3}, {.stride = 2, .padding = 1}},
    {2, 3, 17, 19, 33, {7, 7}, {.stride = 2, .padding = 3}},
    {2, 20, 5, 6, 48, {1, 1}, {}},
    {2, 20, 7, 8, 16, {1, 1}, {.stride = 2}},
    {2, 4, 7, 8, 3, {2, 2}, {.stride = 3}},
    {1, 3, 8, 12, 10, {4, 4}, {.stride = 4}},
    {2, 3, 6, 6, 24, {2, 2}, {}},
    {1, 1, 1, 1, 1, {3, 3}, {.stride = 1, .padding = 1}},
    {2, 2, 9, 10, 4, {5, 3}, {.stride = 3, .padding = 2, .stride_width = 2, .padding_width = 0}},
    {1, 2, 3, 4, 17, {1, 6}, {.stride = 1, .padding = 2, .padding_width = 5}},
};

at::Tensor by_libtorch(const Inputs& in, const PlaneWindow& window) {
  return at::conv2d(in[0], in[1], in[2], window.strides(), window.paddings());
}

TEST(Windows, GiveTheSlopesOfPicturesFiltersAtEveryLevel) {
  const OwnProducts own;
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const Picture& picture : kPictures) {
      SCOPED_TRACE(picture.name() + " at " + level->name);
      testing::expect_equal(
          [&](const Inputs& in) { return convolution_2d(in[0], in[1], in[2], picture.window); },
          [&](const Inputs& in) { return by_libtorch(in, picture.window); },
          {picture.x(), picture.weight(), noise({picture.filters}, 3)},
          {.absolute = 3e-5, .absolute_of_gradients = 3e-4});
    }
  }
}

TEST(Windows, ThreadsLeaveNoTraceInAnyBitOfSlopes) {
  const OwnProducts own;
  for (const Picture& picture : kPictures) {
    const at::Tensor x = picture.x(), weight = picture.weight();
    const at::Tensor dy = noise(by_libtorch({x, weight, {}}, picture.window).sizes(), 4);
    const auto slopes = [&](int threads) {
      const Threads count(threads);
      return windows::filter_slopes(x, dy, weight, picture.window);
    };
    const at::Tensor alone = slopes(1);
    for (const int threads : {2, 5})
      EXPECT_TRUE(at::equal(alone, slopes(threads))) << picture.name();
  }
}

TEST(Windows, TakeSlopesInAnyLayout) {
  const OwnProducts own;
  const Picture& picture = kPictures[1];
  const at::Tensor x = picture.x(), weight = picture.weight();
  const at::Tensor dy = noise({2, 16, 9, 12}, 4);
  const at::Tensor slopes = windows::filter_slopes(x, dy, weight, picture.window);
  const auto last = [](const at::Tensor& planes) {
    return planes.contiguous(at::MemoryFormat::ChannelsLast);
  };
  EXPECT_TRUE(
      at::equal(slopes, windows::filter_slopes(last(x), last(dy), last(weight), picture.window)));
}

TEST(Windows, LeaveGroupsAndPointsToLibtorch) {
  const OwnProducts own;
  EXPECT_TRUE(windows::takes_filter_slopes(noise({4, 2, 3, 3}), {}));
  EXPECT_FALSE(windows::takes_filter_slopes(noise({4, 2, 1, 1}), {}));
  EXPECT_FALSE(windows::takes_filter_slopes(noise({4, 2, 3, 3}), {.groups = 2}));
}

}  // namespace
}  // namespace stretto::kernels
