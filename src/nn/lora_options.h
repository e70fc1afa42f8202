#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "config/field.h"

namespace stretto::nn {

/// `[model.lora]`: low-rank adaptation (Hu et al. 2021, arXiv:2106.09685). A linear map W of the
/// model computes
///
///     y = W x + b + (alpha / rank) B A x        A [rank, in], B [out, rank], B = 0 at first
///
/// and W, with all that `train` does not name, stays as it is. nn::Linear does it for any model,
/// and nn::TimeConvolution with its stored weight, where `dropout` has nothing to act on.
struct LoraOptions {
  int64_t rank = 0;
  double alpha = 16;
  double dropout = 0;
  std::vector<std::string> maps;
  std::vector<std::string> train;

  bool is_on() const { return rank > 0; }
  /// What B A is multiplied by.
  double scale() const { return alpha / static_cast<double>(rank); }
  /// The patterns, or what stands for an empty list.
  std::vector<std::string> map_patterns() const {
    return maps.empty() ? std::vector<std::string>{"*attention*"} : maps;
  }
  std::vector<std::string> train_patterns() const {
    return train.empty() ? std::vector<std::string>{"head.*"} : train;
  }
  /// Whether the linear map of this name, such as `encoder.layers.0.self_attention.qkv`, has it.
  bool adapts(std::string_view map) const { return is_on() && matches_any(map_patterns(), map); }

  static auto fields() {
    using namespace config;
    using O = LoraOptions;
    return Fields{
        field(&O::rank, "rank",
              "rank of what linear maps learn beside their fixed weights (LoRA, Hu et al. "
              "2021); 0 = off. Of merged maps (query, key and value) each has this rank",
              between(0, 4096))
            .also_called({"lora_rank", "lora_r"}),
        field(&O::alpha, "alpha", "what is learned is multiplied by alpha / rank", greater(0))
            .also_called({"lora_alpha"})
            .read_unless_zero("rank"),
        field(&O::dropout, "dropout", "on the input of what is learned", fraction())
            .also_called({"lora_dropout"})
            .read_unless_zero("rank"),
        field(&O::maps, "maps",
              "name patterns of the linear maps that learn, as in "
              "\"encoder.layers.*.self_attention.qkv\"; empty = \"*attention*\"")
            .also_called({"target_modules", "lora_target_modules", "lora_targets"})
            .read_unless_zero("rank"),
        field(&O::train, "train",
              "name patterns of other tensors that train too; empty = \"head.*\"; all others are "
              "frozen")
            .also_called({"modules_to_save"})
            .read_unless_zero("rank"),
    };
  }
};

/// What of a linear map `NAME` learns: the parameters NAME.lora_a and NAME.lora_b.
inline bool is_lora(std::string_view tensor) {
  return tensor.ends_with(".lora_a") || tensor.ends_with(".lora_b");
}

}  // namespace stretto::nn
