#include "config/open_choice.h"

namespace stretto::config {

OpenChoice::OpenChoice(Alternatives (*alternatives)()) : alternatives_(alternatives) {
  const OpenAlternative first = alternatives_().front();
  name_ = first.name;
  part_ = first.make();
}

OpenChoice::OpenChoice(const OpenChoice& other)
    : alternatives_(other.alternatives_), name_(other.name_), part_(other.part_->clone()) {}

OpenChoice& OpenChoice::operator=(const OpenChoice& other) {
  if (this == &other) return *this;
  alternatives_ = other.alternatives_;
  name_ = other.name_;
  if (part_->type() == other.part_->type()) {
    part_->assign(*other.part_);
  } else {
    part_ = other.part_->clone();
  }
  return *this;
}

std::vector<std::string> OpenChoice::names() const {
  std::vector<std::string> names;
  for (const auto& alternative : alternatives_()) names.emplace_back(alternative.name);
  return names;
}

bool OpenChoice::select(std::string_view wanted) {
  for (const auto& alternative : alternatives_()) {
    if (wanted != alternative.name) continue;
    auto fresh = alternative.make();
    if (fresh->type() != part_->type()) part_ = std::move(fresh);
    name_ = alternative.name;
    return true;
  }
  return false;
}

}  // namespace stretto::config
