#pragma once

#include <string>

#include "nn/adapter_options.h"

/// Why a model of a run has no class of `transformers` that is equal to it. Architectures have
/// their own reasons; here are those of all.
namespace stretto::interchange {

/// Why a model with adapters, which are on, has no class at all.
std::string adapter_incompatibility(const nn::AdapterOptions& adapter);

}  // namespace stretto::interchange
