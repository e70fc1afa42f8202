#include "families/speech_recognition/engine/joint_steps.h"

#include <ATen/ATen.h>

#include <utility>

namespace stretto::tasks {

JointSteps::JointSteps(std::unique_ptr<decoding::StepModel> attention,
                       std::span<const float> log_probs, const std::vector<int64_t>& offsets,
                       int64_t lanes_per_source, double ctc_weight)
    : attention_(std::move(attention)), ctc_weight_(ctc_weight) {
  const int64_t width = attention_->vocab_size();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(offsets[i] * width);
    const auto end = static_cast<size_t>(offsets[i + 1] * width);
    Lane lane;
    lane.frames =
        std::make_shared<const ctc::PrefixScores>(log_probs.subspan(begin, end - begin), width);
    lane.state = std::make_shared<const ctc::PrefixScores::State>(lane.frames->start());
    lanes_.insert(lanes_.end(), static_cast<size_t>(lanes_per_source), lane);
  }
}

at::Tensor JointSteps::step(const at::Tensor& tokens) {
  const at::Tensor of_attention = attention_->step(tokens);
  const int64_t width = attention_->vocab_size(), boundary = width - 1;
  const at::Tensor labels = tokens.to(at::kCPU, at::kLong).contiguous();
  std::vector<double> gains(static_cast<size_t>(width));
  std::vector<float> all;
  all.reserve(lanes_.size() * gains.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const int64_t label = labels.const_data_ptr<int64_t>()[i];
    if (has_begun_ && label != boundary) {
      lane.state = std::make_shared<const ctc::PrefixScores::State>(
          lane.frames->extended(*lane.state, label));
    }
    lane.frames->gains(*lane.state, gains);
    all.insert(all.end(), gains.begin(), gains.end());
  }
  has_begun_ = true;
  const at::Tensor of_ctc = at::tensor(all, at::kFloat).view({-1, width});
  return of_attention * (1 - ctc_weight_) + of_ctc.to(of_attention.device()) * ctc_weight_;
}

void JointSteps::reorder(const std::vector<int64_t>& parents) {
  attention_->reorder(parents);
  std::vector<Lane> lanes;
  for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
  lanes_ = std::move(lanes);
}

}  // namespace stretto::tasks
