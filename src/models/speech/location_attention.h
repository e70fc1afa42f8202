#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

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
/// lane is a sequence of a batch in training, a hypothesis in search; lanes may share rows.
struct AttendedRows {
  at::Tensor keys;           ///< [R, A]
  at::Tensor values;         ///< [S, M], of the memory
  at::Tensor places;         ///< int64 [R]: which row of `values` belongs to each
  at::Tensor lanes;          ///< int64 [R]: whose it is
  at::Tensor bounds;         ///< int64 [n + 1]: where the rows of each lane begin
  kernels::Offsets offsets;  ///< the same as int32

  int64_t num_lanes() const { return bounds.size(0) - 1; }
  /// The first `count` lanes, whose rows are the first ones. @param rows  how many they have
  AttendedRows first(int64_t count, int64_t rows) const;
};

/// The rows of lanes, each the rows of one source, all of which keys and values are of.
/// @param keys     [S, A]; values [S, M]
/// @param lengths  rows of each source
/// @param sources  of each lane
AttendedRows attended_rows(const at::Tensor& keys, const at::Tensor& values,
                           const std::vector<int64_t>& lengths,
                           const std::vector<int64_t>& sources);

/// At each step, with the weights w of the steps before it (their sum, or those of the last one):
///
///     score_s  = vector . tanh(query h + key m_s + location(filters * w)_s)
///     weights  = softmax over the rows of a lane of score
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
  at::Tensor keys(const Encoded& memory) const;

  struct Result {
    at::Tensor context;  ///< [n, M]
    at::Tensor weights;  ///< [R]
  };
  /// @param state  h [n, H]
  /// @param seen   [R], what `seen_after` gave in the step before; undefined: zeroes
  Result forward(const at::Tensor& state, const AttendedRows& rows, const at::Tensor& seen) const;
  /// What the next step reads of the weights so far.
  at::Tensor seen_after(const at::Tensor& weights, const at::Tensor& seen) const;

  /// For one step over `length` rows of a lane, without keys.
  double operations(double length) const;

  nn::Linear query{nullptr}, key{nullptr}, location{nullptr};
  at::Tensor filters;  ///< [C, K]
  at::Tensor vector;   ///< [A]

 private:
  bool coverage_;
};
TORCH_MODULE(LocationAttention);

}  // namespace stretto::models
