#include "models/distance_bias.h"

namespace stretto::models {

nn::DistanceBias make_distance_bias(torch::nn::Module& owner, const PartSetup& setup,
                                    const TransformerPart& options, bool causal) {
  if (options.positions != "alibi" && options.positions != "t5") return nullptr;
  const nn::DistanceBiasOptions of_stack{
      .kind = options.positions, .num_heads = options.stack.num_heads, .causal = causal};
  return owner.register_module("distance_bias", nn::DistanceBias(setup.init.child("distance_bias"),
                                                                 of_stack, setup.d_model));
}

kernels::DistanceBias bias_of(const nn::DistanceBias& bias, int64_t longest,
                              const at::Tensor& like) {
  return bias.is_empty() ? kernels::DistanceBias{} : bias->forward(longest, like);
}

}  // namespace stretto::models
