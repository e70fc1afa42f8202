#include "experiment/taken_parts.h"

#include <algorithm>
#include <optional>

#include "runs/taken_names.h"

namespace stretto::experiment {
namespace {

// The first entry that matches a tensor of this model counts.
bool is_first_match(const std::vector<runs::TakenNames>& entries, size_t entry,
                    const std::string& own) {
  return std::none_of(entries.begin(), entries.begin() + static_cast<int64_t>(entry),
                      [&](const auto& before) { return optim::matches(before.pattern, own); });
}

}  // namespace

TakenParts::TakenParts(const std::vector<std::string>& entries,
                       const std::vector<std::string>& stored)
    : all_(entries.empty()) {
  std::vector<runs::TakenNames> read;
  for (const auto& entry : entries) {
    runs::TakenNames names;
    if (!runs::read_taken_names(entry, names)) read.push_back(std::move(names));
  }
  for (const auto& theirs : stored) {
    for (size_t i = 0; i < read.size(); ++i) {
      const auto own = read[i].name_of_stored(theirs);
      if (own && is_first_match(read, i, *own)) tensors_.push_back({*own, theirs});
    }
  }
}

bool TakenParts::takes(const std::string& own, const std::string& theirs) const {
  return takes_beside("", own, theirs);
}

bool TakenParts::takes_layers(const std::string& own, const std::string& theirs) const {
  return takes_beside(own + "embedding.weight", own, theirs);
}

bool TakenParts::takes_beside(const std::string& left_out, const std::string& own,
                              const std::string& theirs) const {
  if (all_) return own == theirs;
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
    return tensor.own.starts_with(own) && tensor.theirs.starts_with(theirs) &&
           tensor.own != left_out;
  });
}

}  // namespace stretto::experiment
