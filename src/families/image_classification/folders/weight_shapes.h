#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interchange/tensors.h"
#include "store/safetensors.h"

/// Shapes of tensors, where they are to tell what a model is.
namespace stretto::interchange {

/// Tensors by their names without what wrappers of PyTorch put in front of all of them: `module.`
/// of DataParallel, `_orig_mod.` of torch.compile, `model.` of Lightning. Names of torchvision 0.12
/// are those of today.
TensorsByName without_wrappers(const std::vector<store::TensorView>& tensors);

/// The shape of a tensor of so many dimensions, none of which is empty.
/// Throws Error(kBadData) that names the tensor where it is missing or of another shape.
const std::vector<int64_t>& shape_of_weight(const TensorsByName& tensors, const std::string& name,
                                            size_t dimensions, const std::string& where);

/// How many numbers 0, 1, … stand between `front` and `back` in a row.
int64_t count_numbered(const TensorsByName& tensors, const std::string& front,
                       const std::string& back);

}  // namespace stretto::interchange
