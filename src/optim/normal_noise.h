#pragma once

#include <cstdint>
#include <string>

#include "optim/optimizer.h"

namespace stretto::optim {

/// Gaussian noise on elements [begin, end) of a tensor, fp32 on the CPU, [end - begin].
///
/// Element i takes normal i % 4 of Philox(key, XXH3-64 of the name, i / 4), by Box-Muller over
/// pairs of its words: a function of key, name and place, whatever the slices and threads are.
/// Never more than 5.8 deviations.
///
/// @param elements  counted from the tensor's first one
torch::Tensor normal_noise(const std::string& name, Slice elements, uint64_t key, float deviation);

}  // namespace stretto::optim
