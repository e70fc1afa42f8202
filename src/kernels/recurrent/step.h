#pragma once

#include <memory>

#include "kernels/recurrent/attentive.h"

/// Steps of recurrent layers in decoding: a row for each of L lanes (hypotheses), no gradient.
/// Weights are packed once and kept by the caller, and so is what is made of a memory. A step
/// computes what the layer would for that row, with zoneout at its mean and without dropout.
///
/// All is done in the arithmetic of the ComputeScope in which these were made. Shapes are checked
/// as those of the layers (c10::Error). The weights must stay as they are.
namespace stretto::kernels {

class RecurrentStep {
 public:
  RecurrentStep(const RecurrentWeights& weights, const CellOptions& options);
  ~RecurrentStep();
  RecurrentStep(RecurrentStep&&) noexcept;
  RecurrentStep& operator=(RecurrentStep&&) noexcept;

  /// x_gates [L, G * H], the state [L, H] of each lane or undefined -> the next state.
  RecurrentState operator()(const at::Tensor& x_gates, const RecurrentState& before) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

class AttentiveStep {
 public:
  AttentiveStep(const AttentiveWeights& weights, const CellOptions& options, Score score);
  ~AttentiveStep();
  AttentiveStep(AttentiveStep&&) noexcept;
  AttentiveStep& operator=(AttentiveStep&&) noexcept;

  /// A memory in the form that steps read. Lanes of one source share it.
  class Source {
   public:
    Source();
    ~Source();
    Source(Source&&) noexcept;
    Source& operator=(Source&&) noexcept;

   private:
    friend class AttentiveStep;
    struct Parts;
    std::unique_ptr<const Parts> parts_;
  };
  /// `memory` has S sources.
  Source prepare(const Memory& memory) const;

  struct Result {
    AttentiveState state;
    at::Tensor weights;  ///< if wanted: of each lane its source's attention weights, joined
  };
  /// x_gates [L, G * H]; lanes are grouped by source: those of source s are rows
  /// query_offsets[s] .. query_offsets[s + 1], as in cross_attention.
  Result operator()(const at::Tensor& x_gates, const AttentiveState& before, const Source& source,
                    const Offsets& query_offsets, bool wants_weights = false) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace stretto::kernels
