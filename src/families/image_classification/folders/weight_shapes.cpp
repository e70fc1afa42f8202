#include "families/image_classification/folders/weight_shapes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/folders/image_description.h"

namespace stretto::interchange {
namespace {

constexpr std::array<std::string_view, 3> kWrappers{"module.", "_orig_mod.", "model."};

/// The length of the wrappers' names in front of all tensors.
size_t wrapped_by(const std::vector<store::TensorView>& tensors) {
  size_t length = 0;
  for (bool found = true; found && !tensors.empty();) {
    found = false;
    for (const auto wrapper : kWrappers) {
      const bool has_all = std::ranges::all_of(tensors, [&](const store::TensorView& tensor) {
        return std::string_view(tensor.name)
            .substr(std::min(length, tensor.name.size()))
            .starts_with(wrapper);
      });
      if (!has_all) continue;
      length += wrapper.size();
      found = true;
    }
  }
  return length;
}

// torchvision 0.12 called the maps of a vision transformer's feed-forward part otherwise.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPresentNames{
    {{".mlp.linear_1.", ".mlp.0."}, {".mlp.linear_2.", ".mlp.3."}}};

std::string present_name(std::string name) {
  for (const auto& [old, now] : kPresentNames) {
    const size_t at = name.find(old);
    if (at != std::string::npos) name.replace(at, old.size(), now);
  }
  return name;
}

}  // namespace

TensorsByName without_wrappers(const std::vector<store::TensorView>& tensors) {
  const size_t length = wrapped_by(tensors);
  TensorsByName named;
  for (const auto& tensor : tensors) {
    named.emplace(present_name(tensor.name.substr(length)), &tensor);
  }
  return named;
}

const std::vector<int64_t>& shape_of_weight(const TensorsByName& tensors, const std::string& name,
                                            size_t dimensions, const std::string& where) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw Error(ExitCode::kBadData, where + ": there is no `" + name + "`",
                "the weights are not whole, or those of another model");
  }
  const auto& shape = found->second->shape;
  if (shape.size() == dimensions && std::ranges::count(shape, 0) == 0) return shape;
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  throw Error(ExitCode::kBadData,
              where + ": `" + name + "` is [" + join(sizes, ", ") + "], and not of " +
                  counted(static_cast<int64_t>(dimensions), "dimension"),
              "the weights are those of another model");
}

int64_t count_numbered(const TensorsByName& tensors, const std::string& front,
                       const std::string& back) {
  int64_t count = 0;
  while (count < kMaxImageLayers && tensors.contains(front + std::to_string(count) + back)) ++count;
  return count;
}

}  // namespace stretto::interchange
