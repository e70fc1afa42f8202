#include "data/labelled/labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/first_names.h"
#include "base/text.h"
#include "text/code_points.h"

namespace stretto::data {
namespace {

constexpr const char* kLabelsRemedy = "give each label once, in the order of their numbers";

std::optional<int64_t> as_whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool all_are_whole_numbers(std::span<const std::string> names) {
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return as_whole_number(name).has_value(); });
}

// Whole texts are labels where the column is a wrong one.
constexpr size_t kMostListed = 3, kMostBytes = 40;

/// Empty for one character, of which any other is a slip.
std::string slip_of(std::string_view name, std::span<const std::string> names) {
  const auto is_one = [](std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }) == 1;
  };
  const std::string near = is_one(name) ? "" : closest(name, names);
  return is_one(near) ? "" : near;
}

/// Lower case without white space; not UTF-8: as it stands.
std::string folded(std::string_view name) {
  if (!is_valid_utf8(name)) return std::string(name);
  std::string out;
  for (size_t at = 0; at < name.size();) {
    const char32_t c = text::next_code_point(name, at);
    if (!text::is_white_space(c)) text::append_utf8(out, text::lower(c));
  }
  return out;
}

/// The number that a label is as a whole; nothing for other text.
std::optional<double> as_number(std::string_view label) {
  if (label.starts_with('+')) label.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), value);
  const bool is_number = error == std::errc() && end == label.data() + label.size();
  if (!is_number || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "`a`, `b` and `c`"
std::string quoted_list(std::span<const std::string> names) {
  constexpr size_t kMost = 5;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    const bool is_last = i + 1 == names.size();
    if (i > 0) list += is_last ? " and " : ", ";
    list += "`" + printable(names[i], 40) + "`";
  }
  return list + (names.size() > kMost ? ", …" : "");
}

}  // namespace

Labels::Labels(std::vector<std::string> names) : names_(std::move(names)) {
  if (names_.empty()) throw Error(ExitCode::kUsage, "there are no labels", kLabelsRemedy);
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) {
      throw Error(ExitCode::kUsage, "label " + std::to_string(i) + " is empty", kLabelsRemedy);
    }
    if (numbers_.emplace(names_[i], static_cast<int64_t>(i)).second) continue;
    throw Error(ExitCode::kUsage, "label `" + printable(names_[i]) + "` occurs twice",
                kLabelsRemedy);
  }
}

Labels Labels::given(std::vector<std::string> names) {
  return Labels(std::move(names));
}

Labels Labels::sorted(std::vector<std::string> occurring) {
  std::sort(occurring.begin(), occurring.end());
  occurring.erase(std::unique(occurring.begin(), occurring.end()), occurring.end());
  if (all_are_whole_numbers(occurring)) {
    std::stable_sort(occurring.begin(), occurring.end(), [](const auto& a, const auto& b) {
      return *as_whole_number(a) < *as_whole_number(b);
    });
  }
  return Labels(std::move(occurring));
}

std::optional<int64_t> Labels::find(std::string_view name) const {
  const auto found = numbers_.find(std::string(name));
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

int64_t Labels::number_of(std::string_view name, std::string_view place) const {
  if (const auto number = find(name)) return *number;
  const std::string near = slip_of(name, names_);
  throw Error(ExitCode::kBadData,
              std::string(place) + ": unknown label `" + printable(name, 60) + "`",
              (near.empty() ? "" : "did you mean `" + printable(near, kMostBytes) + "`? ") +
                  "known: " + first_names(names_, kMostListed, kMostBytes));
}

bool is_one_line(std::string_view label) {
  return label.find_first_of("\t\n\v\f\r") == std::string_view::npos;
}

std::vector<std::string> labels_alike(std::span<const std::string> names) {
  std::map<double, std::vector<std::string>> numbers;
  std::map<std::string, std::vector<std::string>> words;
  for (const auto& name : names) {
    if (const auto number = as_number(name)) {
      numbers[*number == 0 ? 0 : *number].push_back(name);  // -0 is 0
    } else {
      words[folded(name)].push_back(name);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [number, alike] : numbers) {
    if (alike.size() > 1) texts.push_back(quoted_list(alike) + " are one number");
  }
  for (const auto& [name, alike] : words) {
    if (alike.size() < 2) continue;
    texts.push_back(quoted_list(alike) + " differ in case or white space alone");
  }
  return texts;
}

void require_weight_of_each(const Labels& labels, size_t num_weights) {
  if (num_weights == labels.names().size()) return;
  throw Error(ExitCode::kUsage,
              "loss.class_weight_list: " + counted(static_cast<int64_t>(num_weights), "weight") +
                  " for " + counted(labels.size(), "label"),
              "give one for each, in this order: " + join(labels.names(), ", "));
}

}  // namespace stretto::data
