#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::nn {

/// `[model.rope]`: by which angles rotary positions turn queries and keys (Su et al. 2021,
/// arXiv:2104.09864), and how a model goes on beyond the positions that it was first trained with.
/// nn/rotary.h has the formulas. No libtorch.
struct RotaryOptions {
  double base = 10000;
  std::string scaling = "none";
  double factor = 1;
  int64_t original_positions = 8192;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double fast_rotations = 32;
  double slow_rotations = 1;
  double attention_factor = 0;

  bool operator==(const RotaryOptions&) const = default;

  static auto fields() {
    using namespace config;
    using O = RotaryOptions;
    const Meta hidden{.hidden_in_shapes = true};
    const std::string positions = "model.positions";
    return Fields{
        field(&O::base, "base",
              "the slowest pair of a head's columns turns by nearly 1 / base of a radian a token; "
              "10,000 in the paper, 500,000 in Llama 3, 1,000,000 in Qwen2",
              greater(1), hidden)
            .also_called({"rope_theta", "theta", "rotary_emb_base", "rope_base"})
            .read_with_key(positions, {"rotary"}),
        field(&O::scaling, "scaling",
              "how the angles of longer texts are made. linear: positions divided by the factor. "
              "llama3: slow pairs alone, with a passage between. yarn: likewise, with sharper "
              "attention (Peng et al. 2023)",
              one_of({"none", "linear", "llama3", "yarn"}), hidden)
            .also_called({"rope_scaling", "rope_type", "rope_scaling_type"})
            .value_also_called("none", {"default", "null", "false"})
            .value_also_called("linear", {"interpolation", "position_interpolation"})
            .read_with_key(positions, {"rotary"}),
        field(&O::factor, "factor",
              "how many times longer texts are than those of the first training", at_least(1),
              hidden)
            .also_called({"rope_factor", "scaling_factor"})
            .read_with("scaling", {"linear", "llama3", "yarn"}),
        field(&O::original_positions, "original_positions",
              "the length of the texts of the first training", between(1, 100000000),
              {.unit = "tokens", .hidden_in_shapes = true})
            .also_called({"original_max_position_embeddings", "original_context_length"})
            .read_with("scaling", {"llama3", "yarn"}),
        field(
            &O::low_frequency_factor, "low_frequency_factor",
            "of llama3: pairs that turn less often than this in the original length are slowed by "
            "the whole factor",
            greater(0), hidden)
            .also_called({"low_freq_factor"})
            .read_with("scaling", {"llama3"}),
        field(&O::high_frequency_factor, "high_frequency_factor",
              "of llama3: pairs that turn more often than this stay as they are", greater(0),
              hidden)
            .also_called({"high_freq_factor"})
            .read_with("scaling", {"llama3"}),
        field(
            &O::fast_rotations, "fast_rotations",
            "of yarn: pairs that turn more often than this in the original length stay as they are",
            greater(0), hidden)
            .also_called({"beta_fast"})
            .read_with("scaling", {"yarn"}),
        field(&O::slow_rotations, "slow_rotations",
              "of yarn: pairs that turn less often than this are slowed by the whole factor",
              greater(0), hidden)
            .also_called({"beta_slow"})
            .read_with("scaling", {"yarn"}),
        field(&O::attention_factor, "attention_factor",
              "of yarn: turned queries and keys are multiplied by it; 0 = 0.1 ln(factor) + 1",
              at_least(0), hidden)
            .also_called({"attn_factor", "mscale"})
            .read_with("scaling", {"yarn"}),
    };
  }
};

}  // namespace stretto::nn
