#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/safetensors.h"

/// What is said of stored tensors that are not those of a model.
namespace stretto::runs {

/// "[512, 64]".
std::string shape_text(const std::vector<int64_t>& shape);

/// That a tensor is missing (`found` is null) or has another shape; empty when neither is so.
std::string shape_misfit(const store::TensorView* found, const std::string& name,
                         const std::vector<int64_t>& shape);

/// Throws Error(kBadData) that lists what does not fit, of many the first three and how many more;
/// returns where there is nothing. @param where  the file
void require_fit(std::vector<std::string> misfits, const std::string& where);

}  // namespace stretto::runs
