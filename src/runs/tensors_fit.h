#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/safetensors.h"

/// What is said of stored tensors that are not those of a model.
namespace stretto::runs {

/// "[512, 64]".
std::string shape_text(const std::vector<int64_t>& shape);

/// That a tensor is missing (`found` is null) or has another shape; empty when neither is so.
std::string shape_misfit(const store::TensorView* found, const std::string& name,
                         const std::vector<int64_t>& shape);

/// An Error(kBadData) of what does not fit. Tensors whose names differ only in numbers between
/// dots, and of which the same is said, are told together: "`layers.*.weight` is missing (6
/// tensors)". Of many entries these are the first three and how many tensors more; then all
/// misfits, each by itself, are the details.
/// @param what     is said in front of them
/// @param misfits  each begins with the name of a tensor in `backquotes`
Error misfits_error(const std::string& what, std::vector<std::string> misfits, std::string advice);

/// Throws what misfits_error() makes; returns where there are none. @param where  the file
void require_fit(std::vector<std::string> misfits, const std::string& where);

}  // namespace stretto::runs
