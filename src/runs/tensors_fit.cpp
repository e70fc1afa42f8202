#include "runs/tensors_fit.h"

#include "base/error.h"
#include "base/text.h"

namespace stretto::runs {
namespace {

constexpr size_t kMaxListedMisfits = 3;

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string shape_misfit(const store::TensorView* found, const std::string& name,
                         const std::vector<int64_t>& shape) {
  if (found == nullptr) return "`" + name + "` is missing";
  if (found->shape == shape) return "";
  return "`" + name + "` is " + shape_text(found->shape) + ", the model wants " + shape_text(shape);
}

void require_fit(std::vector<std::string> misfits, const std::string& where) {
  if (misfits.empty()) return;
  const size_t count = misfits.size();
  if (count > kMaxListedMisfits) {
    misfits.resize(kMaxListedMisfits);
    misfits.push_back("and " + std::to_string(count - kMaxListedMisfits) + " more");
  }
  throw Error(ExitCode::kBadData,
              where + ": the checkpoint does not fit this model: " + join(misfits, "; "),
              "the checkpoint has another architecture or vocabulary: use the configuration it "
              "was trained with, or another --run folder");
}

}  // namespace stretto::runs
