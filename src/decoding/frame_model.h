#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::decoding {

/// Where a step of a FrameModel leaves its results, for the lanes that are alive: dense tensors,
/// FrameModel::like() in dtype and device, made once for many steps.
struct FrameStep {
  at::Tensor frames;   ///< [lanes, frames_per_step * frame_width]
  at::Tensor stop;     ///< [lanes, frames_per_step]: probability that the frame is the last one
  at::Tensor weights;  ///< flat, lane behind lane: a weight for each row of the lane's source
};

/// All that free running knows of a model that writes frames: each step writes the next frames of
/// every lane, which read what the lane has written before. Lanes start in order, one for each
/// source, and what a lane gets does not depend on those beside it.
class FrameModel {
 public:
  virtual ~FrameModel() = default;

  virtual int64_t frame_width() const = 0;
  virtual int64_t frames_per_step() const = 0;
  /// Rows of the source of each lane that is alive.
  virtual const std::vector<int64_t>& source_rows() const = 0;
  int64_t num_lanes() const { return static_cast<int64_t>(source_rows().size()); }
  /// dtype (fp32 or fp64) and device of what steps write.
  virtual at::TensorOptions like() const = 0;

  virtual void step(const FrameStep& out) = 0;

  /// From now on lane i is what lane lanes[i] was; `lanes` ascends, and lanes that it leaves out
  /// have ended.
  virtual void keep(std::span<const int64_t> lanes) = 0;
};

/// When a lane ends.
struct FrameLimits {
  double stop_threshold = 0.5;  ///< the first frame whose probability to stop is above it ends it
  int64_t min_frames = 1;       ///< stopping before is not believed
  int64_t max_frames = 1000;
  /// The most frames for a row of the source; 0 = only max_frames counts.
  double max_frames_per_row = 0;
  /// Also ends after so many steps in a row whose largest weight is on the last row of the source;
  /// 0 = never.
  int64_t steps_at_end = 0;
};

enum class StopReason : uint8_t {
  kStop,       ///< the model said so
  kSourceEnd,  ///< attention stayed at the end of the source (FrameLimits::steps_at_end)
  kLimit,      ///< the model never stopped
};

/// What a lane wrote.
struct WrittenFrames {
  at::Tensor frames;   ///< [n, frame_width]
  at::Tensor weights;  ///< [steps, rows of the source], steps = ceil(n / frames_per_step)
  StopReason reason = StopReason::kLimit;
};

/// Steps until every lane has ended; a lane that has ended leaves at once. Results are in the order
/// of the sources, on the model's device. Memory is made for many steps at once, and whenever lanes
/// end. Throws Error(kNumeric) for frames that are not finite, with the number of the source.
std::vector<WrittenFrames> write_frames(FrameModel& model, const FrameLimits& limits);

}  // namespace stretto::decoding
