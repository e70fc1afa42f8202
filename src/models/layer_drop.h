#pragma once

#include <cstddef>
#include <cstdint>

#include "models/encoder.h"

/// LayerDrop (Fan et al. 2019, arXiv:1909.11556, section 3): in training a whole layer is left out
/// with probability p, so that the layers learn to do without each other. Outside training every
/// layer is there, and nothing is scaled.
namespace stretto::models {

/// Whether layer number `layer` of a part is left out in this forward pass.
///
/// A function of (seed, update, site) alone, where the site is the layer's place: all micro-batches
/// of an update, and all processes, leave out the same layers. The rule: the first word of
/// Philox::at(mix64(context.dropout_key, site), 0, 0) is below p * 2^32.
///
/// @param p           in [0, 1); 0 draws nothing
/// @param first_site  of the part, as in PartSetup
bool is_left_out(double p, const ForwardContext& context, uint64_t first_site, size_t layer);

/// x itself, in the place of a layer that is left out: x [N, D] -> [N, D].
///
/// The layer's parameters stay in the graph and get a gradient of zero, when backward comes to the
/// layer's place. So nobody who waits for gradients during backward waits in vain, and the order of
/// layers that parallel/gradient_reducer learns does not depend on what the first update left out.
///
/// @param memory  what the layer would have attended to, if anything. It stays in the graph too,
///                with a gradient of zero: where all layers of a frozen decoder are left out,
///                nothing that trains might lead to the loss otherwise.
at::Tensor without_layer(const at::Tensor& x, const torch::nn::Module& layer,
                         const at::Tensor& memory = {});

}  // namespace stretto::models
