#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "nn/compressed.h"
#include "nn/init.h"

namespace stretto::nn {

/// Takes the gradient of rows that were looked up, in place of the table's own gradient. A table
/// that is also the output projection has a gradient from there as soon as backward begins; with
/// the rows apart that part need not wait for the end of backward.
class RowGradients {
 public:
  virtual ~RowGradients() = default;
  /// In forward: the gradient of these rows will come. ids int64 [N]
  virtual void looked_up(const at::Tensor& ids) = 0;
  /// In backward: d loss / d weight[ids[n]] += rows[n]. rows [N, D]
  virtual void add(const at::Tensor& ids, const at::Tensor& rows) = 0;
};

/// What looked-up rows are multiplied by: the root of their width (Vaswani et al. 2017,
/// section 3.4), or 1.
enum class RowScale : uint8_t { kSqrtWidth, kOne };

/// A table of token vectors [rows, D] with a zero row for padding. Tied embeddings share one
/// module, and each of its users has a factor of its own. The vectors may be codes of few bits
/// (nn/compressed.h).
class EmbeddingImpl : public torch::nn::Module, public TakesCodes {
 public:
  /// @param pad         row that starts at zero; -1 = none
  /// @param first_rows  how the others start; without it N(0, D^-0.5)
  EmbeddingImpl(const Init& init, int64_t rows, int64_t d_model, int64_t pad,
                const std::optional<InitRule>& first_rows = std::nullopt);

  /// weight[ids] * scale + position; ids int64 [N], position [N, D] or undefined -> [N, D].
  ///
  /// @param dropped  bool [N] or undefined: rows whose weight counts as zero, with no gradient; the
  ///                 others are not scaled for it, and position stays
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& position,
                     const at::Tensor& dropped = {}, RowScale scale = RowScale::kSqrtWidth) const;

  /// Gradients of looked-up rows go there and no longer to weight.grad(); null ends it.
  void send_rows_to(std::shared_ptr<RowGradients> rows) { rows_ = std::move(rows); }
  const std::shared_ptr<RowGradients>& rows_to() const { return rows_; }

  at::Tensor weight;

 private:
  at::Tensor look_up(const at::Tensor& ids, const at::Tensor& position, RowScale by) const;
  at::Tensor looked_up_apart(const at::Tensor& ids, double scale, const at::Tensor& position) const;

  std::shared_ptr<RowGradients> rows_;
};
TORCH_MODULE(Embedding);

/// Sinusoidal positions, fairseq's table: the first half of a row is sin(p w_j), the second
/// cos(p w_j), with w_j = 10000^(-j / (D/2 - 1)), j < D/2; an odd last column is zero. As in
/// fairseq, where the pad row stands before the first position, a sequence starts at p = 2.
///
/// kMarian is the table of Marian and of `transformers`' MarianMT: the frequencies of Vaswani et
/// al. (2017, section 3.5), w_j = 10000^(-2 j / D), in the same two halves, from p = 0 on; of an
/// odd D the first half is the longer one.
enum class SinusoidTable : uint8_t { kFairseq, kMarian };
class Sinusoids {
 public:
  explicit Sinusoids(int64_t d_model, SinusoidTable kind = SinusoidTable::kFairseq)
      : d_model_(d_model), kind_(kind) {}

  /// positions int64 [N], all below `length` -> [N, D] like `like` in dtype and device.
  at::Tensor rows(const at::Tensor& positions, int64_t length, const at::Tensor& like);

 private:
  int64_t d_model_;
  SinusoidTable kind_;
  std::mutex mutex_;  ///< searches on several threads share a model
  at::Tensor table_;  ///< grows with the longest sequence seen
};

/// How a token knows its place, as a vector that is added to its embedding:
/// "sinusoidal", "marian" (its table of sinusoids), "learned" (a table [max_positions, D]), or none
/// of other kinds: with "rotary" attention turns q and k, with "alibi" and "t5" scores have a bias
/// (nn/distance_bias.h), with "shaw" keys have vectors of distances (nn/relative_keys.h).
class PositionsImpl : public torch::nn::Module {
 public:
  /// @param first_rows  how a learned table starts; without it N(0, D^-0.5)
  PositionsImpl(const Init& init, const std::string& kind, int64_t d_model, int64_t max_positions,
                const std::optional<InitRule>& first_rows = std::nullopt);

  /// positions int64 [N], all below `length` -> [N, D], undefined where nothing is added.
  /// Throws Error(kBadData) when a learned table is too short.
  at::Tensor forward(const at::Tensor& positions, int64_t length, const at::Tensor& like);

  at::Tensor weight;  ///< of learned positions, else undefined

 private:
  bool sinusoidal_;
  Sinusoids sinusoids_;
};
TORCH_MODULE(Positions);

}  // namespace stretto::nn
