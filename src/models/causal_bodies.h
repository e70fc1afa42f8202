#pragma once

#include <memory>

#include "models/causal_model.h"
#include "models/parts.h"
#include "models/transformer_layers.h"
#include "nn/init.h"

namespace stretto::models {

/// The stack that `options` choose.
/// @param setup  of the stack's own place: "decoder"; without a memory
std::unique_ptr<CausalBody> make_causal_body(const CausalModelOptions& options,
                                             const PartSetup& setup);

/// How the rows of the table of tokens start, and of an output projection of its own.
nn::InitRule first_rows_of(const CausalModelOptions& options);

/// What the first weights of a model at `root` are drawn by beside its own rules.
nn::Init with_rules_of(const CausalModelOptions& options, const nn::Init& root);

/// The keys of a Transformer as its layers read them.
TransformerPart part_of(const CausalTransformerOptions& options);

}  // namespace stretto::models
