#include "kernels/convolution/packed_2d.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <string>
#include <vector>

#include "kernels/compute.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/convolution_2d.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::Inputs, testing::noise;

/// Two rows fewer than a filter, none, one, and many.
const std::vector<int> kPlaneBounds{0, 3, 3, 4, 21, 25};

struct PlaneForm {
  int64_t time_taps, column_taps, time_stride, column_stride;
};
constexpr std::array<PlaneForm, 5> kPlaneForms{
    {{5, 3, 1, 1}, {5, 4, 2, 2}, {4, 5, 3, 1}, {1, 1, 4, 3}, {11, 6, 2, 1}}};
constexpr int64_t kColumns = 7, kPlaneChannels = 2, kPlaneFilters = 3;

PackedPlanes planes_of(const PlaneForm& form, const std::vector<int>& bounds = kPlaneBounds) {
  return {.offsets = {.values = at::tensor(bounds, at::kInt), .max_length = 17},
          .columns = kColumns,
          .time_stride = form.time_stride,
          .column_stride = form.column_stride};
}

at::Tensor packed_frames(int64_t rows = 25) {
  return noise({rows, kColumns * kPlaneChannels}, 1);
}

at::Tensor plane_filters(const PlaneForm& form) {
  return noise({kPlaneFilters, kPlaneChannels, form.time_taps, form.column_taps}, 2);
}

/// Each sequence by itself, with zeroes around it.
at::Tensor plain_packed_2d(const Inputs& in, const PlaneForm& form) {
  const auto sides = [](int64_t taps) {
    return std::array<int64_t, 2>{(taps - 1) / 2, taps - 1 - (taps - 1) / 2};
  };
  const auto time = sides(form.time_taps), columns = sides(form.column_taps);
  std::vector<at::Tensor> all;
  for (size_t b = 0; b + 1 < kPlaneBounds.size(); ++b) {
    const at::Tensor rows = in[0].slice(0, kPlaneBounds[b], kPlaneBounds[b + 1]);
    if (rows.size(0) == 0) continue;
    const at::Tensor planes =
        rows.reshape({1, rows.size(0), kColumns, kPlaneChannels}).permute({0, 3, 1, 2});
    const at::Tensor padded =
        at::constant_pad_nd(planes, {columns[0], columns[1], time[0], time[1]});
    const at::Tensor y = at::conv2d(padded, in[1], in[2], {form.time_stride, form.column_stride});
    all.push_back(y.permute({0, 2, 3, 1}).flatten(2).squeeze(0));
  }
  return at::cat(all);
}

TEST(PackedConvolution2d, IsTheConvolutionOfEachSequence) {
  for (const PlaneForm& form : kPlaneForms) {
    SCOPED_TRACE(std::to_string(form.time_taps) + " x " + std::to_string(form.column_taps));
    const auto packed = [&](const Inputs& in) {
      return packed_convolution_2d(in[0], in[1], in[2], planes_of(form));
    };
    const auto plain = [&](const Inputs& in) { return plain_packed_2d(in, form); };
    const Inputs inputs{packed_frames(), plane_filters(form), noise({kPlaneFilters}, 3)};
    testing::expect_equal(packed, plain, inputs);
    testing::expect_equal(packed, plain, inputs,
                          {.type = at::kDouble,
                           .relative = 1e-10,
                           .absolute = 1e-11,
                           .absolute_of_gradients = 1e-10});
  }
}

TEST(PackedConvolution2d, IsTheSameAtEveryLevel) {
  const testing::OwnProducts own;
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const PlaneForm& form : kPlaneForms) {
      SCOPED_TRACE(std::to_string(form.time_taps) + " x " + std::to_string(form.column_taps) +
                   " at " + level->name);
      testing::expect_equal(
          [&](const Inputs& in) {
            return packed_convolution_2d(in[0], in[1], in[2], planes_of(form));
          },
          [&](const Inputs& in) { return plain_packed_2d(in, form); },
          {packed_frames(), plane_filters(form), noise({kPlaneFilters}, 3)});
    }
  }
}

TEST(PackedConvolution2d, GivesASequenceTheSameBitsInEveryBatch) {
  const testing::OwnProducts own;
  for (const PlaneForm& form : kPlaneForms) {
    const at::Tensor x = packed_frames(), weight = plane_filters(form);
    const at::Tensor together = packed_convolution_2d(x, weight, {}, planes_of(form));
    int64_t at = 0;
    for (size_t b = 0; b + 1 < kPlaneBounds.size(); ++b) {
      const int begin = kPlaneBounds[b], end = kPlaneBounds[b + 1];
      if (begin == end) continue;
      const at::Tensor alone = packed_convolution_2d(x.slice(0, begin, end), weight, {},
                                                     planes_of(form, {0, end - begin}));
      EXPECT_TRUE(at::equal(together.slice(0, at, at + alone.size(0)), alone)) << b;
      at += alone.size(0);
    }
  }
}

TEST(PackedConvolution2d, ThreadsLeaveNoTraceInAnyBit) {
  const testing::OwnProducts own;
  for (const PlaneForm& form : kPlaneForms) {
    const auto results = [&](int threads) {
      const testing::Threads count(threads);
      const Inputs inputs{packed_frames().requires_grad_(true),
                          plane_filters(form).requires_grad_(true)};
      const at::Tensor y = packed_convolution_2d(inputs[0], inputs[1], {}, planes_of(form));
      Inputs all = torch::autograd::grad({y}, inputs, {noise(y.sizes(), 4)});
      all.push_back(y.detach());
      return all;
    };
    const Inputs alone = results(1);
    for (const int threads : {2, 5}) {
      const Inputs shared = results(threads);
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(alone[i], shared[i])) << i;
    }
  }
}

TEST(PackedConvolution2d, HasTheGradientsOfItsValues) {
  const PlaneForm form{3, 4, 2, 2};
  testing::expect_gradients(
      [&](const Inputs& in) {
        return packed_convolution_2d(in[0], in[1], {}, planes_of(form, {0, 1, 4, 9}));
      },
      {packed_frames(9), plane_filters(form)});
}

TEST(PackedConvolution2d, RoundsOperandsInHalfPrecision) {
  const PlaneForm form = kPlaneForms[0];
  const at::Tensor x = packed_frames(), weight = plane_filters(form);
  const at::Tensor wide = packed_convolution_2d(x, weight, {}, planes_of(form));
  const ComputeScope scope(Compute::kBf16);
  const at::Tensor narrow = packed_convolution_2d(x, weight, {}, planes_of(form));
  EXPECT_EQ(narrow.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(narrow, narrow.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_TRUE(at::allclose(narrow, wide, 3e-2, 6e-2));
}

TEST(PackedConvolution2d, GivesNoRowsWithoutRows) {
  const PlaneForm form{3, 3, 2, 2};
  const at::Tensor y =
      packed_convolution_2d(packed_frames(0), plane_filters(form), {}, planes_of(form, {0, 0, 0}));
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{0, 4 * kPlaneFilters}));
}

TEST(PackedConvolution2d, RefusesShapesThatDoNotFit) {
  const PlaneForm form{3, 3, 1, 1};
  const at::Tensor weight = plane_filters(form);
  EXPECT_THROW(packed_convolution_2d(noise({25, 13}), weight, {}, planes_of(form)), c10::Error);
  EXPECT_THROW(packed_convolution_2d(packed_frames(24), weight, {}, planes_of(form)), c10::Error);
  EXPECT_THROW(packed_convolution_2d(packed_frames(), weight, {}, planes_of({3, 3, 0, 1})),
               c10::Error);
}

TEST(Convolution2d, MovesOtherwiseAlongTheWidth) {
  const at::Tensor x = noise({2, 3, 8, 9}, 1), weight = noise({4, 3, 3, 5}, 2);
  const PlaneWindow window{.stride = 2, .padding = 1, .stride_width = 3, .padding_width = 2};
  const auto plain = [](const Inputs& in) { return at::conv2d(in[0], in[1], {}, {2, 3}, {1, 2}); };
  testing::expect_equal([&](const Inputs& in) { return convolution_2d(in[0], in[1], {}, window); },
                        plain, {x, weight});
  const ComputeScope scope(Compute::kBf16);
  EXPECT_TRUE(at::allclose(convolution_2d(x, weight, {}, window), plain({x, weight}), 3e-2, 1e-1));
}

TEST(TimeConvolutions, MayLookAheadAlone) {
  const TimeWindow window{
      .offsets = {.values = at::tensor({0, 2, 2, 7}, at::kInt), .max_length = 5},
      .kernel = 3,
      .border = Border::kAhead,
      .dilation = 2};
  const auto plain = [](const Inputs& in) {
    std::vector<at::Tensor> all;
    const int64_t padding = 0;
    for (const auto& rows : {in[0].slice(0, 0, 2), in[0].slice(0, 2, 7)}) {
      const at::Tensor padded = at::constant_pad_nd(rows.t().unsqueeze(0), {0, 4});
      all.push_back(at::conv1d(padded, in[1].unsqueeze(1), {}, 1, padding, 2, 4).squeeze(0).t());
    }
    return at::cat(all);
  };
  const auto ahead = [&](const Inputs& in) {
    return depthwise_convolution(in[0], in[1], {}, window);
  };
  const Inputs inputs{noise({7, 4}, 1), noise({4, 3}, 2)};
  testing::expect_equal(ahead, plain, inputs);
  testing::expect_gradients(ahead, inputs);
}

}  // namespace
}  // namespace stretto::kernels
