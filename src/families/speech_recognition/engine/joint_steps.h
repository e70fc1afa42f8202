#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ctc/prefix_scores.h"
#include "decoding/step_model.h"

namespace stretto::tasks {

/// An attention decoder whose next labels are scored by CTC too, as in training (Watanabe et al.
/// 2017, doi:10.1109/JSTSP.2017.2763455):
///
///     (1 - w) log p_attention(label | prefix) + w (prefix(prefix label) - prefix(prefix))
///
/// with the prefixes of ctc::PrefixScores. Over a text they sum up to (1 - w) log p_attention(text)
/// + w log p_ctc(text). These are no log-probabilities: labels do not sum up to 1.
class JointSteps : public decoding::StepModel {
 public:
  /// @param attention  its last class is the boundary
  /// @param log_probs  of CTC, [M, classes], natural logs, the last class is the blank
  /// @param offsets    [B + 1], of the rows of each source
  JointSteps(std::unique_ptr<decoding::StepModel> attention, std::span<const float> log_probs,
             const std::vector<int64_t>& offsets, int64_t lanes_per_source, double ctc_weight);

  at::Tensor step(const at::Tensor& tokens) override;
  void reorder(const std::vector<int64_t>& parents) override;
  int64_t vocab_size() const override { return attention_->vocab_size(); }

 private:
  struct Lane {
    std::shared_ptr<const ctc::PrefixScores> frames;
    std::shared_ptr<const ctc::PrefixScores::State> state;
  };

  std::unique_ptr<decoding::StepModel> attention_;
  double ctc_weight_;
  bool has_begun_ = false;
  std::vector<Lane> lanes_;
};

}  // namespace stretto::tasks
