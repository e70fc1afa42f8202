#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/schedule.h"

/// What the plain forms of recurrent layers are made of.
namespace stretto::kernels::reference {

/// Rows of a batch in the order of time: all of step 0, longest sequence first, then all of step 1.
class TimeMajor {
 public:
  TimeMajor(const Schedule& schedule, at::Device device);

  at::Tensor rows(const at::Tensor& packed) const { return packed.index_select(0, order_); }
  /// Back to packed rows, from a tensor for each step; of `like`'s width if there is no step.
  at::Tensor packed(const std::vector<at::Tensor>& steps, const at::Tensor& like) const;
  /// The rows of one step.
  at::Tensor step(const at::Tensor& rows, int64_t step) const;
  /// From one row for each sequence to one for each rank, and back.
  at::Tensor ranks(const at::Tensor& of_sequences) const;
  at::Tensor sequences(const at::Tensor& of_ranks) const;

 private:
  at::Tensor order_, sequences_;
  std::vector<int64_t> begins_;
};

/// 1 where zoneout keeps a unit. Undefined: none.
struct Draws {
  at::Tensor hidden, cell;
};

/// The draws of all rows, [rows, width]; undefined when zoneout is off.
at::Tensor zoneout_draws(const Dropout& dropout, bool expected, const at::Tensor& x, int64_t rows,
                         int64_t width);

/// Masks of a whole batch in the order of time.
class Masks {
 public:
  Masks(const Recurrent& options, const TimeMajor& time, const at::Tensor& x, int64_t width);

  Draws of(const TimeMajor& time, int64_t step) const;
  /// h as the left factor of the recurrent product, of the first ranks.
  at::Tensor operand(const at::Tensor& h) const;

 private:
  at::Tensor hidden_, cell_, recurrent_;
};

/// The state of the ranks that are alive, and of those that have ended.
class States {
 public:
  States(const RecurrentState& initial, const at::Tensor& x, const TimeMajor& time, int64_t ranks,
         int64_t width, bool has_c);

  /// Ranks from `alive` on have ended.
  RecurrentState alive(int64_t alive);
  void set(const RecurrentState& now) { now_ = now; }
  /// The last states of all sequences, once all have ended.
  RecurrentState last();

 private:
  void end(int64_t alive);

  const TimeMajor& time_;
  RecurrentState now_;
  std::vector<at::Tensor> ended_h_, ended_c_;
};

/// The state, or zeroes.
at::Tensor or_zeros(const at::Tensor& state, const at::Tensor& x, int64_t rows, int64_t width);

/// One step of a cell; `operand` is h as it comes into the product.
RecurrentState advance(const at::Tensor& x, const at::Tensor& operand,
                       const RecurrentWeights& weights, const RecurrentState& before,
                       const CellOptions& options, const Draws& draws);

}  // namespace stretto::kernels::reference
