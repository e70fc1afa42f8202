#pragma once

namespace stretto::nn {

/// A layer that makes products, and says how many. A model's cost is the sum over its modules
/// (models/operations.h), so that a layer of a new kind counts without a line elsewhere.
class Counted {
 public:
  /// Multiplications and additions for one row that it is given, those of its children left out: 2
  /// for each weight that the row meets.
  virtual double operations() const = 0;

 protected:
  ~Counted() = default;
};

}  // namespace stretto::nn
