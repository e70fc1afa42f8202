#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/quantised/quantised.h"

/// Parameters that are kept as codes of few bits (kernels/quantised).
namespace stretto::nn {

/// A module whose parameter `weight`, a matrix, may be codes: it only hands it to operators that
/// know kernels::stand_in, and asks for kernels::dense_weight where it needs the numbers.
class TakesCodes {
 protected:
  ~TakesCodes() = default;
};

/// Whether the parameter of this name may be codes: it is a matrix on the CPU in fp32, and
/// `weight` of a module that TakesCodes. Others are unpacked to fp32 when they are loaded.
bool takes_codes(const torch::nn::Module& model, const std::string& name);
/// The names of all that may.
std::vector<std::string> names_that_take_codes(const torch::nn::Module& model);

/// From now on the parameter has these weights, and no gradient; its old memory is free. Throws
/// c10::Error where it does not take codes, or has another shape.
void set_compressed(torch::nn::Module& model, const std::string& name,
                    std::shared_ptr<const kernels::QuantisedMatrix> matrix);

/// Bytes of the parameters and buffers of a model in memory, codes and scales as they are.
int64_t bytes_in_memory(const torch::nn::Module& model);

}  // namespace stretto::nn
