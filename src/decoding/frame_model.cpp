#include "decoding/frame_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace stretto::decoding {
namespace {

/// Numbers of a step where this thread can read them: the tensor's own memory, or a copy of it.
class HostNumbers {
 public:
  explicit HostNumbers(const at::Tensor& x)
      : x_(x.is_cpu() && x.scalar_type() == at::kFloat ? x
                                                       : x.to(at::kCPU, at::kFloat).contiguous()) {}
  const float* data() const { return x_.const_data_ptr<float>(); }

 private:
  at::Tensor x_;
};

/// What one source has come to.
struct SentenceLane {
  int64_t source = 0, rows = 0, limit = 0;
  int64_t written = 0;       ///< frames of the steps that are done
  int64_t steps_at_end = 0;  ///< in a row
  bool ended = false;
  std::vector<at::Tensor> frames, weights;  ///< pieces [steps, …]
};

class Writing {
 public:
  Writing(FrameModel& model, const FrameLimits& limits);
  std::vector<WrittenFrames> run();

 private:
  void make_room();
  void step();
  void look_at_stop(SentenceLane& lane, const float* stop);
  void look_at_weights(SentenceLane& lane, const float* weights) const;
  void end(SentenceLane& lane, int64_t frames, StopReason reason);
  void collect();
  void finish(SentenceLane& lane);
  void leave();

  FrameModel& model_;
  const FrameLimits& limits_;
  int64_t per_step_;
  std::vector<SentenceLane> lanes_;  // those that are alive, in the model's order
  std::vector<WrittenFrames> written_;
  std::vector<int64_t> lengths_;
  at::Tensor frames_, weights_;  // of many steps: [room, lanes, …], [room, all weights]
  std::vector<FrameStep> steps_;
  int64_t done_ = 0;       // steps in this room
  int64_t all_steps_ = 0;  // since the beginning
};

Writing::Writing(FrameModel& model, const FrameLimits& limits)
    : model_(model), limits_(limits), per_step_(model.frames_per_step()) {
  TORCH_CHECK(limits.max_frames > 0, "[decoding] write_frames: max_frames must be above 0, got ",
              limits.max_frames);
  const std::vector<int64_t>& rows = model.source_rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t limit = limits.max_frames;
    if (limits.max_frames_per_row > 0) {
      const double own = std::ceil(limits.max_frames_per_row * static_cast<double>(rows[i]));
      limit = std::max<int64_t>(1, std::min(limit, static_cast<int64_t>(own)));
    }
    SentenceLane lane;
    lane.source = static_cast<int64_t>(i);
    lane.rows = rows[i];
    lane.limit = limit;
    lanes_.push_back(std::move(lane));
  }
  written_.resize(rows.size());
  lengths_.resize(rows.size());
}

void Writing::make_room() {
  // As many steps as there have been so far, so that little is copied and little lies idle.
  constexpr int64_t kFewest = 64, kMost = 1024;
  const int64_t room = std::clamp(all_steps_, kFewest, kMost);
  const int64_t lanes = static_cast<int64_t>(lanes_.size());
  int64_t seen = 0;
  for (const SentenceLane& lane : lanes_) seen += lane.rows;
  frames_ = at::empty({room, lanes, per_step_ * model_.frame_width()}, model_.like());
  weights_ = at::empty({room, seen}, model_.like());
  const at::Tensor stop = at::empty({lanes, per_step_}, model_.like());
  steps_.clear();
  for (int64_t i = 0; i < room; ++i) {
    steps_.push_back({.frames = frames_[i], .stop = stop, .weights = weights_[i]});
  }
  done_ = 0;
}

void Writing::end(SentenceLane& lane, int64_t frames, StopReason reason) {
  lane.ended = true;
  lengths_[static_cast<size_t>(lane.source)] = frames;
  written_[static_cast<size_t>(lane.source)].reason = reason;
}

void Writing::look_at_stop(SentenceLane& lane, const float* stop) {
  for (int64_t i = 0; i < per_step_; ++i) {
    const int64_t frames = lane.written + i + 1;
    if (frames >= limits_.min_frames && stop[i] > limits_.stop_threshold) {
      return end(lane, frames, StopReason::kStop);
    }
    if (frames >= lane.limit) return end(lane, frames, StopReason::kLimit);
  }
}

void Writing::look_at_weights(SentenceLane& lane, const float* weights) const {
  const bool at_end =
      lane.rows > 0 && std::max_element(weights, weights + lane.rows) == weights + lane.rows - 1;
  lane.steps_at_end = at_end ? lane.steps_at_end + 1 : 0;
}

void Writing::step() {
  const FrameStep& out = steps_[static_cast<size_t>(done_)];
  model_.step(out);
  ++done_;
  ++all_steps_;
  const HostNumbers stop(out.stop);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    look_at_stop(lanes_[i], stop.data() + static_cast<int64_t>(i) * per_step_);
    lanes_[i].written += per_step_;
  }
  if (limits_.steps_at_end == 0) return;
  const HostNumbers weights(out.weights);
  int64_t begin = 0;
  for (SentenceLane& lane : lanes_) {
    look_at_weights(lane, weights.data() + begin);
    begin += lane.rows;
    const bool stays = lane.steps_at_end >= limits_.steps_at_end;
    if (!lane.ended && stays && lane.written >= limits_.min_frames) {
      end(lane, lane.written, StopReason::kSourceEnd);
    }
  }
}

/// Gives every lane what it wrote in this room.
void Writing::collect() {
  int64_t begin = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    SentenceLane& lane = lanes_[i];
    lane.frames.push_back(frames_.narrow(0, 0, done_).select(1, static_cast<int64_t>(i)));
    lane.weights.push_back(weights_.narrow(0, 0, done_).narrow(1, begin, lane.rows));
    begin += lane.rows;
  }
}

void Writing::finish(SentenceLane& lane) {
  const int64_t length = lengths_[static_cast<size_t>(lane.source)];
  WrittenFrames& result = written_[static_cast<size_t>(lane.source)];
  result.frames = at::cat(lane.frames).view({-1, model_.frame_width()}).narrow(0, 0, length);
  result.weights = at::cat(lane.weights);
  if (at::isfinite(result.frames).all().item<bool>()) return;
  throw Error(ExitCode::kNumeric,
              "the frames written for source " + std::to_string(lane.source + 1) +
                  " of the batch are not finite",
              "use a checkpoint from before the loss became infinite, or compute in fp32");
}

/// Lanes that have ended leave the model.
void Writing::leave() {
  std::vector<int64_t> kept;
  std::vector<SentenceLane> alive;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].ended) {
      finish(lanes_[i]);
    } else {
      kept.push_back(static_cast<int64_t>(i));
      alive.push_back(std::move(lanes_[i]));
    }
  }
  lanes_ = std::move(alive);
  model_.keep(kept);
}

std::vector<WrittenFrames> Writing::run() {
  while (!lanes_.empty()) {
    make_room();
    const auto has_ended = [](const SentenceLane& lane) { return lane.ended; };
    bool any_ended = false;
    while (!any_ended && done_ < static_cast<int64_t>(steps_.size())) {
      step();
      any_ended = std::any_of(lanes_.begin(), lanes_.end(), has_ended);
    }
    collect();
    if (any_ended) leave();
  }
  return std::move(written_);
}

}  // namespace

std::vector<WrittenFrames> write_frames(FrameModel& model, const FrameLimits& limits) {
  const at::NoGradGuard no_grad;
  return Writing(model, limits).run();
}

}  // namespace stretto::decoding
