#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "report/sample.h"

/// Frames and attentions as pictures for the report.
namespace stretto::tasks {

/// A matrix [steps, F] as a picture: steps from left to right, F from the bottom to the top, dark
/// for its lowest number and bright for its highest. Small ones are enlarged, and of many steps
/// each k-th is drawn. Numbers that are not finite are drawn as the lowest.
/// @param words  what it is: "what the model spoke"
report::MediaSample matrix_sample(const at::Tensor& matrix, std::string words,
                                  std::string note = {});

}  // namespace stretto::tasks
