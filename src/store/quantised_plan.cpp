#include "store/quantised_plan.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "store/quantised_file.h"

namespace stretto::store {
namespace {

constexpr uint64_t kFp32Bytes = 4;
constexpr size_t kListedProblems = 3;

bool is_floating(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

// A vector with dimensions of 1 beside it is no matrix: its scales would save nothing.
bool is_matrix(const TensorView& tensor) {
  if (!is_floating(tensor.dtype) || tensor.shape.size() < 2) return false;
  const int64_t weights = tensor.num_elements();
  return tensor.shape[0] > 1 && weights > tensor.shape[0];
}

/// A sum over tensors of one format.
struct Tally {
  int64_t tensors = 0, weights = 0;
  uint64_t bytes = 0;

  void add(const PlannedTensor& tensor) {
    ++tensors;
    weights += tensor.num_weights();
    bytes += tensor.bytes;
  }
};

double bits_of(uint64_t bytes, int64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

std::string line_of(const std::string& title, const Tally& tally) {
  return title + ": " + counted(tally.tensors, "tensor") + ", " + counted(tally.weights, "weight") +
         ", " + fixed(bits_of(tally.bytes, tally.weights), 2) + " bits a weight, " +
         human_bytes(tally.bytes) + "\n";
}

/// Which patterns were of use, and what goes by them.
class Choice {
 public:
  explicit Choice(const QuantRequest& request) : request_(request) {}

  /// None: it stays as it is.
  std::optional<QuantFormat> of(const TensorView& tensor) {
    const bool packable = is_matrix(tensor) && !is_no_weight(tensor.name);
    for (const auto& pattern : request_.kept) {
      if (!matches(pattern, tensor.name)) continue;
      used_.insert(pattern);
      return std::nullopt;
    }
    for (const auto& [pattern, format] : request_.others) {
      if (!packable || !matches(pattern, tensor.name)) continue;
      used_.insert(pattern);
      return format;
    }
    return packable ? std::optional(request_.format) : std::nullopt;
  }

  void require_all_used(const std::string& where) const {
    for (const auto& pattern : request_.kept) require_used(pattern, where);
    for (const auto& [pattern, format] : request_.others) require_used(pattern, where);
  }

 private:
  bool is_no_weight(const std::string& name) const {
    return std::ranges::any_of(request_.no_weights,
                               [&](const auto& pattern) { return matches(pattern, name); });
  }

  void require_used(const std::string& pattern, const std::string& where) const {
    if (used_.contains(pattern)) return;
    throw Error(ExitCode::kUsage,
                "the pattern `" + printable(pattern) + "` matches no tensor of " + where +
                    ", or another pattern has it already",
                "names of tensors are those of the model file; `*` stands for any characters");
  }

  const QuantRequest& request_;
  std::set<std::string> used_;
};

void require_packable(const std::vector<std::string>& problems, const std::string& where) {
  if (problems.empty()) return;
  const size_t listed = std::min(problems.size(), kListedProblems);
  std::string what = where + ": " + counted(static_cast<int64_t>(problems.size()), "tensor") +
                     " cannot be packed as asked: " + join(std::span(problems).first(listed), "; ");
  if (problems.size() > listed) {
    what += "; and " + std::to_string(problems.size() - listed) + " more";
  }
  throw Error(ExitCode::kUsage, what,
              "choose a group size that divides the columns or a scale for a row, or keep these "
              "tensors as they are by a pattern",
              problems);
}

}  // namespace

int64_t PlannedTensor::num_weights() const {
  return TensorView{.name = {}, .dtype = dtype, .shape = shape, .bytes = {}}.num_elements();
}

double PlannedTensor::bits_per_weight() const {
  return bits_of(bytes, num_weights());
}

uint64_t QuantPlan::bytes() const {
  uint64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.bytes;
  return sum;
}

uint64_t QuantPlan::fp32_bytes() const {
  return kFp32Bytes * static_cast<uint64_t>(num_weights());
}

int64_t QuantPlan::num_weights() const {
  int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.num_weights();
  return sum;
}

double QuantPlan::bits_per_weight() const {
  return bits_of(bytes(), num_weights());
}

std::string QuantPlan::metadata() const {
  std::map<std::string, QuantisedShape> packed;
  for (const auto& tensor : tensors) {
    if (tensor.format) packed[tensor.name] = {*tensor.format, tensor.shape};
  }
  return quantised_metadata(packed);
}

uint64_t QuantPlan::file_bytes(const std::map<std::string, std::string>& metadata) const {
  std::vector<TensorView> stored;
  std::map<std::string, QuantisedView> packed;
  for (const auto& tensor : tensors) {
    if (!tensor.format) {
      stored.push_back({tensor.name, tensor.dtype, tensor.shape, {}});
      continue;
    }
    auto& view = packed[tensor.name];
    view.format = *tensor.format;
    view.shape = tensor.shape;
  }
  for (const auto& [name, view] : packed) {
    const auto parts = stored_tensors(name, view);
    stored.insert(stored.end(), parts.begin(), parts.end());
  }
  return safetensors_file_bytes(stored, metadata);
}

std::string QuantPlan::table() const {
  std::vector<std::pair<std::string, Tally>> formats;
  Tally kept, all;
  for (const auto& tensor : tensors) {
    all.add(tensor);
    if (!tensor.format) {
      kept.add(tensor);
      continue;
    }
    const std::string title = text_of(*tensor.format);
    auto found =
        std::ranges::find_if(formats, [&](const auto& known) { return known.first == title; });
    if (found == formats.end()) found = formats.emplace(formats.end(), title, Tally{});
    found->second.add(tensor);
  }
  std::string text;
  for (const auto& [title, tally] : formats) text += line_of(title, tally);
  if (kept.tensors > 0) text += line_of("as they are", kept);
  const double share =
      all.weights == 0 ? 1 : static_cast<double>(bytes()) / static_cast<double>(fp32_bytes());
  return text + line_of("all", all) + "that is " + fixed(share, 3) + " of the size in fp32\n";
}

QuantPlan plan_quantised(const std::vector<TensorView>& tensors, const QuantRequest& request,
                         const std::string& where) {
  QuantPlan plan;
  Choice choice(request);
  std::vector<std::string> problems;
  bool packs = false;
  for (const auto& tensor : tensors) {
    PlannedTensor planned{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
    planned.format = choice.of(tensor);
    planned.bytes = static_cast<uint64_t>(tensor.num_elements() * size_of(tensor.dtype));
    if (planned.format) {
      packs = true;
      const auto problem = packing_problem(*planned.format, tensor.shape);
      if (problem.empty()) {
        planned.bytes = layout_of(*planned.format, tensor.shape).bytes();
      } else {
        problems.push_back("`" + printable(tensor.name) + "`: " + problem);
      }
    }
    plan.tensors.push_back(std::move(planned));
  }
  require_packable(problems, where);
  choice.require_all_used(where);
  if (!packs) {
    throw Error(ExitCode::kUsage, where + ": nothing is left to pack",
                "a pattern keeps every matrix as it is, or the model has none");
  }
  return plan;
}

}  // namespace stretto::store
