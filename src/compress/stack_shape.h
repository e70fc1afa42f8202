#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What may be taken out of a stack of Transformer layers as a whole, so that a smaller model of
/// the same kind is left. No libtorch: configurations are changed by it too.
namespace stretto::compress {

/// A stack of layers as its tensors have it.
struct StackShape {
  std::string prefix;  ///< of the names of its tensors, up to `layers.`: "encoder."
  int64_t num_layers = 0;
  int64_t ffn_dim = 0;    ///< units of a feed-forward part
  bool gated = false;     ///< its first matrix has a gate above the units (swiglu)
  int64_t num_heads = 0;  ///< of queries; 0 = its heads are not known, and stay
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  bool has_cross_attention = false;

  /// Heads of queries that share a head of keys and values: they go together.
  int64_t heads_of_a_group() const { return num_kv_heads == 0 ? 1 : num_heads / num_kv_heads; }
  bool operator==(const StackShape&) const = default;
};

/// How large a stack is to be; 0 = as it is.
struct StackTarget {
  int64_t num_layers = 0, ffn_dim = 0, num_heads = 0;
};

/// What is taken out of a stack, as shares in [0, 1).
struct StackRemoval {
  double layers = 0, units = 0, heads = 0;
};

/// What is left: layers and heads rounded up, units to the next multiple of 8, which vectors of a
/// processor like. Throws Error(kUsage) for a share out of range, which would take all of it away,
/// and for heads that are not known.
StackTarget target_of(const StackShape& shape, const StackRemoval& removal);

/// How much the loss depends on the parts of a stack; only the order of numbers counts.
struct StackImportance {
  std::vector<double> layers;              ///< [L]
  std::vector<std::vector<double>> units;  ///< [L][F]
  std::vector<std::vector<double>> heads;  ///< [L][heads of keys and values]; empty = not known
  /// The same of attention to another stack, which has as many; empty = there is none.
  std::vector<std::vector<double>> cross_heads;
};

/// What stays, as ascending numbers.
struct StackChoice {
  std::vector<int64_t> layers;
  std::vector<std::vector<int64_t>> units;        ///< of each layer that was there
  std::vector<std::vector<int64_t>> heads;        ///< of keys and values; empty = all
  std::vector<std::vector<int64_t>> cross_heads;  ///< of attention to another stack; empty = all
};

/// The parts of greatest importance; of equal ones the first. Every layer keeps as many units and
/// heads as the others.
/// Throws Error(kUsage) where the target is larger than the stack, or asks for heads that it does
/// not have alone, or that are not known.
StackChoice choose_parts(const StackShape& shape, const StackImportance& importance,
                         const StackTarget& target);

/// The shape of what stays.
StackShape shape_of(const StackShape& shape, const StackChoice& choice);

}  // namespace stretto::compress
