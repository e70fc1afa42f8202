#include "decoding/frame_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace stretto::decoding {
namespace {

constexpr int64_t kWidth = 3;

/// Frame n of source i is 1000 i + n in all columns; it stops at frame ends[i], and looks at row
/// min(n, rows - 1) of its source.
class Counting : public FrameModel {
 public:
  Counting(std::vector<int64_t> rows, std::vector<int64_t> ends, int64_t per_step)
      : rows_(std::move(rows)), ends_(std::move(ends)), per_step_(per_step) {
    for (size_t i = 0; i < rows_.size(); ++i) sources_.push_back(static_cast<int64_t>(i));
    written_.resize(rows_.size());
  }

  int64_t frame_width() const override { return kWidth; }
  int64_t frames_per_step() const override { return per_step_; }
  const std::vector<int64_t>& source_rows() const override { return rows_; }
  at::TensorOptions like() const override { return at::kFloat; }

  void step(const FrameStep& out) override {
    lanes_of_steps.push_back(num_lanes());
    out.stop.zero_();
    out.weights.zero_();
    int64_t begin = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto lane = static_cast<int64_t>(i);
      at::Tensor frames = out.frames[lane].view({per_step_, kWidth});
      for (int64_t j = 0; j < per_step_; ++j) {
        const int64_t frame = written_[i] + j + 1;
        frames[j].fill_(static_cast<double>(1000 * sources_[i] + frame));
        if (frame == not_finite) frames[j].fill_(std::numeric_limits<float>::infinity());
        if (frame >= ends_[i]) out.stop[lane][j].fill_(0.9);
      }
      out.weights[begin + std::min(written_[i], rows_[i] - 1)].fill_(1);
      written_[i] += per_step_;
      begin += rows_[i];
    }
  }

  void keep(std::span<const int64_t> lanes) override {
    const auto take = [&](std::vector<int64_t>& all) {
      std::vector<int64_t> kept;
      for (const int64_t lane : lanes) kept.push_back(all[static_cast<size_t>(lane)]);
      all = std::move(kept);
    };
    for (auto* all : {&rows_, &ends_, &sources_, &written_}) take(*all);
  }

  std::vector<int64_t> lanes_of_steps;
  int64_t not_finite = -1;

 private:
  std::vector<int64_t> rows_, ends_, sources_, written_;
  int64_t per_step_;
};

at::Tensor counted(int64_t source, int64_t frames) {
  return (at::arange(1, frames + 1, at::kFloat) + static_cast<double>(1000 * source))
      .unsqueeze(1)
      .expand({frames, kWidth});
}

TEST(WriteFrames, EachLaneEndsWhereItsModelSaysAndLeavesAtOnce) {
  Counting model({4, 2, 3}, {5, 200, 1}, 1);
  const auto written = write_frames(model, {.max_frames = 300});
  ASSERT_EQ(written.size(), 3u);
  const std::vector<int64_t> lengths{5, 200, 1};
  for (int64_t i = 0; i < 3; ++i) {
    const WrittenFrames& one = written[static_cast<size_t>(i)];
    EXPECT_EQ(one.reason, StopReason::kStop);
    EXPECT_TRUE(at::equal(one.frames, counted(i, lengths[static_cast<size_t>(i)])));
    EXPECT_EQ(one.weights.size(0), one.frames.size(0));
  }
  EXPECT_EQ(model.lanes_of_steps.size(), 200u);
  EXPECT_EQ(model.lanes_of_steps[0], 3);
  EXPECT_EQ(model.lanes_of_steps[1], 2);
  EXPECT_EQ(model.lanes_of_steps[5], 1);
}

TEST(WriteFrames, WeightsAreThoseOfTheLanesOwnSource) {
  Counting model({4, 2}, {3, 5}, 1);
  const auto written = write_frames(model, {});
  EXPECT_TRUE(at::equal(written[0].weights, at::eye(4).slice(0, 0, 3)));
  const at::Tensor want = at::tensor({1., 0., 0., 1., 0., 1., 0., 1., 0., 1.}, at::kFloat);
  EXPECT_TRUE(at::equal(written[1].weights, want.view({5, 2})));
}

TEST(WriteFrames, AStepOfSeveralFramesEndsInsideIt) {
  Counting model({4, 4}, {5, 6}, 3);
  const auto written = write_frames(model, {});
  EXPECT_TRUE(at::equal(written[0].frames, counted(0, 5)));
  EXPECT_TRUE(at::equal(written[1].frames, counted(1, 6)));
  EXPECT_EQ(written[0].weights.size(0), 2);
}

TEST(WriteFrames, ALaneThatNeverStopsIsCutAndSaysSo) {
  Counting model({4, 40}, {9999, 9999}, 2);
  const auto written = write_frames(model, {.max_frames = 25, .max_frames_per_row = 2.25});
  EXPECT_EQ(written[0].frames.size(0), 9);
  EXPECT_EQ(written[1].frames.size(0), 25);
  for (const WrittenFrames& one : written) EXPECT_EQ(one.reason, StopReason::kLimit);
}

TEST(WriteFrames, StoppingTooEarlyIsNotBelieved) {
  Counting model({4}, {2}, 1);
  const auto written = write_frames(model, {.min_frames = 7});
  EXPECT_EQ(written[0].frames.size(0), 7);
  EXPECT_EQ(written[0].reason, StopReason::kStop);
}

TEST(WriteFrames, ALaneEndsWhereAttentionStaysAtTheEndOfTheSource) {
  Counting model({4, 2}, {9999, 9999}, 1);
  const auto written = write_frames(model, {.max_frames = 50, .steps_at_end = 3});
  EXPECT_EQ(written[0].frames.size(0), 6);  // rows 0, 1, 2, then three times row 3
  EXPECT_EQ(written[1].frames.size(0), 4);
  for (const WrittenFrames& one : written) EXPECT_EQ(one.reason, StopReason::kSourceEnd);
}

TEST(WriteFrames, FramesThatAreNotFiniteAreAnError) {
  Counting model({4, 2}, {3, 5}, 1);
  model.not_finite = 4;
  try {
    write_frames(model, {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumeric);
    EXPECT_NE(std::string(error.what()).find("source 2"), std::string::npos) << error.what();
  }
}

TEST(WriteFrames, NoLanesGiveNoFrames) {
  Counting model({}, {}, 1);
  EXPECT_TRUE(write_frames(model, {}).empty());
}

}  // namespace
}  // namespace stretto::decoding
