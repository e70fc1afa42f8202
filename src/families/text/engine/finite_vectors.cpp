#include "families/text/engine/finite_vectors.h"

#include <algorithm>
#include <cmath>

#include "tasks/finite_answers.h"

namespace stretto::tasks {

void require_finite(const at::Tensor& vectors, std::span<const data::InputLine> lines,
                    const std::string& run) {
  const std::span<const float> values(vectors.data_ptr<float>(),
                                      static_cast<size_t>(vectors.numel()));
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  const auto row = static_cast<size_t>((bad - values.begin()) / vectors.size(1));
  refuse_not_finite(lines[row].place, "the vector of this line", run);
}

}  // namespace stretto::tasks
