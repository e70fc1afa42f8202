#pragma once

#include <memory>
#include <vector>

#include "decoding/step_model.h"
#include "kernels/recurrent/step.h"
#include "models/lanes.h"
#include "models/speech/attention_decoder.h"

namespace stretto::models {

/// An attention decoder one label at a time, for L lanes of B sources. Keys of the memory are made
/// once. A lane's history is its state, what it attended to last, and where it has attended.
///
/// Weights of layers above the first are laid out once, in the arithmetic of the moment in which
/// this is made; they must stay as they are.
class AttentionSteps : public decoding::StepModel {
 public:
  AttentionSteps(std::shared_ptr<AttentionDecoder> decoder, const Encoded& memory,
                 int64_t lanes_per_source);

  at::Tensor step(const at::Tensor& tokens) override;
  void reorder(const std::vector<int64_t>& parents) override;
  int64_t vocab_size() const override { return decoder_->num_labels() + 1; }

 private:
  void set_rows();
  /// Where the rows of these lanes stand among those of the present ones, int64.
  at::Tensor rows_of(const std::vector<int64_t>& lanes) const;

  std::shared_ptr<AttentionDecoder> decoder_;
  Lanes lanes_;
  at::Tensor keys_, values_;                     ///< of the sources that still have lanes
  AttendedRows rows_;                            ///< of the lanes
  std::vector<int64_t> bounds_;                  ///< of the rows of each lane
  std::vector<kernels::RecurrentState> states_;  ///< of each layer, undefined before a first step
  std::vector<kernels::RecurrentStep> upper_;    ///< of layers 1, 2, …
  at::Tensor context_, seen_;                    ///< undefined before a first step
};

}  // namespace stretto::models
