#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "config/field.h"

namespace stretto::nn {

/// `[model.adapter]`: bottleneck adapters (Houlsby et al. 2019, arXiv:1902.00751). The output h of
/// a part of a layer becomes, before the residual sum if there is one,
///
///     h + W_up activation(W_down h + b_down) + b_up     W_down [dim, D], W_up [D, dim] = 0 at
///     first
///
/// and the model, with all that `train` does not name, stays as it is. Layers of every kind in
/// `models` have such parts.
struct AdapterOptions {
  int64_t dim = 0;
  std::string activation = "gelu";
  std::vector<std::string> parts;
  std::vector<std::string> train;

  bool is_on() const { return dim > 0; }
  /// The patterns, or what stands for an empty list.
  std::vector<std::string> part_patterns() const {
    return parts.empty() ? std::vector<std::string>{"*"} : parts;
  }
  std::vector<std::string> train_patterns() const {
    return train.empty() ? std::vector<std::string>{"head.*"} : train;
  }
  /// Whether the part of this name, such as `encoder.layers.0.ffn_residual`, has an adapter.
  bool adapts(std::string_view part) const { return is_on() && matches_any(part_patterns(), part); }

  static auto fields() {
    using namespace config;
    using O = AdapterOptions;
    return Fields{
        field(&O::dim, "dim",
              "inner width of the adapters, which learn behind the parts of a layer while the "
              "model stays (Houlsby et al. 2019); 0 = off",
              between(0, 65536))
            .also_called({"adapter_size", "adapter_dim", "bottleneck_size", "bottleneck_dim"}),
        field(&O::activation, "activation", "of the inner rows",
              one_of({"gelu", "gelu_tanh", "relu", "silu"}), {.hidden_in_shapes = true})
            .also_called({"non_linearity", "adapter_act", "adapter_activation"})
            .value_also_called("silu", {"swish"})
            .read_unless_zero("dim"),
        field(&O::parts, "parts",
              "name patterns of the parts of layers that have an adapter; empty = \"*\", each of "
              "them (Houlsby); [\"*ffn*\"] = behind feed-forward parts alone (Pfeiffer et al. "
              "2020)")
            .read_unless_zero("dim"),
        field(&O::train, "train",
              "name patterns of other tensors that train too; empty = \"head.*\"; all others are "
              "frozen")
            .read_unless_zero("dim"),
    };
  }
};

/// What an adapter at `NAME` learns: weight and bias of NAME.adapter.down and NAME.adapter.up.
inline bool is_adapter(std::string_view tensor) {
  return tensor.find(".adapter.down.") != std::string_view::npos ||
         tensor.find(".adapter.up.") != std::string_view::npos;
}

}  // namespace stretto::nn
