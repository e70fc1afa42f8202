#include "report/display.h"

#include <algorithm>

namespace stretto::report {
namespace {

const NumberStyle* row_of(const std::vector<NumberStyle>& numbers, const std::string& name) {
  const auto found = std::ranges::find(numbers, name, &NumberStyle::name);
  return found == numbers.end() ? nullptr : &*found;
}

NumberStyle style_of_any(const std::string& name) {
  return {.name = name, .chart = name, .column = name};
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace

std::string RateStyle::title() const {
  return capitalised(unit) + " per second";
}

std::string RateStyle::short_title() const {
  return capitalised(unit) + "/s";
}

NumberStyle loss_style() {
  return {.name = "loss", .progress = "loss", .chart = "Loss", .tile = "Loss", .column = "Loss"};
}

NumberStyle Display::style(const std::string& name) const {
  if (const auto* row = row_of(numbers, name)) return *row;
  return name == "loss" ? loss_style() : style_of_any(name);
}

bool Display::knows(const std::string& name) const {
  return name == "loss" || row_of(numbers, name) != nullptr;
}

std::vector<NumberStyle> styles_of(const Display& display, const std::vector<std::string>& others) {
  std::vector<NumberStyle> styles = display.numbers;
  if (row_of(styles, "loss") == nullptr) styles.insert(styles.begin(), loss_style());
  for (const auto& name : others) {
    if (row_of(styles, name) == nullptr) styles.push_back(style_of_any(name));
  }
  return styles;
}

}  // namespace stretto::report
