#include "config/toml_value.h"

#include <utility>

namespace stretto::config {
namespace {

bool read(const toml::node& node, bool& target) {
  const auto* value = node.as_boolean();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool read(const toml::node& node, int64_t& target) {
  const auto* value = node.as_integer();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool read(const toml::node& node, double& target) {
  if (const auto* integer = node.as_integer()) {
    target = static_cast<double>(integer->get());
    return true;
  }
  const auto* value = node.as_floating_point();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool read(const toml::node& node, std::string& target) {
  const auto* value = node.as_string();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

template <class T>
bool read(const toml::node& node, std::vector<T>& target) {
  std::vector<T> items;
  T item{};
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array) {
      if (!read(element, item)) return false;
      items.push_back(item);
    }
  } else {
    if (!read(node, item)) return false;
    items.push_back(item);
  }
  target = std::move(items);
  return true;
}

}  // namespace

bool store(const toml::node& node, const ValuePtr& target) {
  return std::visit([&](auto* value) { return read(node, *value); }, target);
}

}  // namespace stretto::config
