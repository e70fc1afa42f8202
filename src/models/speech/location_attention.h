#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "models/encoder.h"
#include "models/speech/attention_decoder_options.h"
#include "nn/init.h"
#include "nn/linear.h"

/// Attention that knows where it was (Chorowski et al. 2015, arXiv:1506.07503, section 2.2) on
/// packed rows.
///
/// Shape letters: S rows of the memory, R rows of those that n lanes attend to, A width of queries
/// and keys, M width of the memory, H units of the query, C filters of K taps.
namespace stretto::models {

/// The rows that each of n lanes attends to, those of a lane behind those of the one before it. A
/// lane is an utterance of a batch in training, a hypothesis in search; lanes may share rows.
struct AttendedRows {
  at::Tensor keys;           ///< [R, A]
  at::Tensor values;         ///< [S, M], of the memory
  at::Tensor places;         ///< int64 [R]: which row of `values` belongs to each
  at::Tensor lanes;          ///< int64 [R]: whose it is
  at::Tensor bounds;         ///< int64 [n + 1]: where the rows of each lane begin
  kernels::Offsets offsets;  ///< the same as int32

  int64_t num_lanes() const { return bounds.size(0) - 1; }
  int64_t num_rows() const { return places.size(0); }
  /// The first `count` lanes, whose rows are the first ones. @param rows  how many they have
  AttendedRows first(int64_t count, int64_t rows) const;
};

/// Which lanes attend to which source, and how many rows each source has.
struct AttendingLanes {
  std::vector<int64_t> lengths;  ///< rows of each source
  std::vector<int64_t> sources;  ///< of each lane
};

/// @param keys  [S, A], of the rows of all sources; values [S, M]
AttendedRows attended_rows(const at::Tensor& keys, const at::Tensor& values,
                           const AttendingLanes& lanes);

/// At each step, with the weights w of the steps before it (their sum, or those of the last one):
///
///     score_s  = score . tanh(query h + key m_s + location (filters * w)_s)
///     weights  = softmax of score over the rows of a lane
///     context  = sum over them of weights_s m_s
///
/// `key` alone has a bias. A lane without rows has the context 0.
class LocationAttentionImpl : public torch::nn::Module {
 public:
  struct Widths {
    int64_t state, memory;  ///< H, M
  };
  LocationAttentionImpl(const nn::Init& init, const AttentionDecoderOptions& options,
                        const Widths& widths);

  /// The keys of all rows of a memory, [S, A].
  at::Tensor keys(const Encoded& memory) const { return key_->forward(memory.keys); }

  struct Result {
    at::Tensor context;  ///< [n, M]
    at::Tensor weights;  ///< [R]
  };
  /// @param state  h [n, H]
  /// @param seen   [R], what seen_after() gave in the step before; undefined in the first step
  Result forward(const at::Tensor& state, const AttendedRows& rows, const at::Tensor& seen) const;
  /// What the next step reads of the weights so far, [R].
  at::Tensor seen_after(const at::Tensor& weights, const at::Tensor& seen) const;

  /// Multiplications and additions of a step over `length` rows, but for keys.
  double operations(double length) const;
  double key_operations() const { return key_->operations(); }  ///< for one row of the memory

 private:
  bool coverage_;
  int64_t memory_width_;
  nn::Linear query_{nullptr}, key_{nullptr}, location_{nullptr}, score_{nullptr};
  at::Tensor filters_;  // [C, K]
};
TORCH_MODULE(LocationAttention);

}  // namespace stretto::models
