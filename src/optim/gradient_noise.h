#pragma once

#include <cstdint>

#include "optim/arena.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Deviation of the noise that is added to each element of the gradient in step t, counted from 0
/// (Neelakantan et al. 2015, arXiv:1511.06807, equation 1): sqrt(eta / (1 + t)^decay).
double gradient_noise_deviation(double eta, double decay, int64_t step);

/// Adds Gaussian noise (optim/normal_noise.h) to a slice of the arena's gradients; gaps between
/// tensors stay zero. It is drawn on the CPU, for a GPU too: the same whatever the slices and
/// devices are. Tensors that do not train yet get none.
///
/// @param key        of the step: mixed from seed and step
/// @param deviation  in the gradients' own unit: times what they are still to be divided by
/// @param updates    that were completed before this one
void add_gradient_noise(Arena& arena, Slice slice, uint64_t key, double deviation,
                        int64_t updates = 0);

}  // namespace stretto::optim
