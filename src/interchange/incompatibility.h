#pragma once

#include <string>

#include "nn/adapter_options.h"

/// Why a model of a run has no class of `transformers` that is equal to it, or no form in another
/// format. Architectures have their own reasons; here are those of all.
namespace stretto::interchange {

/// Why a model with adapters, which are on, has no class at all.
std::string adapter_incompatibility(const nn::AdapterOptions& adapter);

/// Throws Error(kUsage) where a format of another program cannot express a model.
/// @param what     "ONNX", in front of the problem
/// @param problem  empty = there is none
void require_expressed(const std::string& what, const std::string& problem);

}  // namespace stretto::interchange
