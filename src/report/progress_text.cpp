// What the progress line says; progress.cpp is about the screen.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "report/progress.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

constexpr const char* kSeparator = " · ";

/// A field of the line; the one with the highest `rank` is left out first.
struct Field {
  int rank;
  std::string text;
};

std::string with_digits(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// "4.2e-4": printf pads the exponent ("4.2e-04"), which costs a column and reads worse.
std::string short_scientific(double value) {
  std::string text = with_digits("%.1e", value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const int exponent = std::atoi(text.c_str() + e + 1);
  text.resize(e);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "e" + std::to_string(exponent);
}

/// About four significant characters for any size.
std::string compact(double value, int decimals) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return short_scientific(value);
  if (size >= 1000) return with_thousands(std::llround(value));
  return fixed(value, size >= 100 ? std::min(decimals, 1) : decimals);
}

std::string step_text(const ProgressState& state) {
  std::string text = "step " + with_thousands(state.step);
  if (state.last_step <= 0) return text;
  const double share =
      100.0 * static_cast<double>(state.step) / static_cast<double>(state.last_step);
  return text + "/" + with_thousands(state.last_step) + " " + fixed(std::floor(share), 0) + "%";
}

std::vector<Field> fields_of(const ProgressState& state, const std::string& activity) {
  std::vector<Field> fields;
  fields.push_back({0, step_text(state)});
  if (!activity.empty()) fields.push_back({1, printable(activity)});
  if (state.epoch > 0) {
    const std::string epoch = "epoch " + with_thousands(state.epoch);
    const bool has_fraction = state.epoch_fraction > 0 && state.epoch_fraction <= 1;
    fields.push_back({7, epoch});
    if (has_fraction) {
      fields.push_back(
          {10, epoch + " (" + fixed(std::floor(100 * state.epoch_fraction), 0) + "%)"});
    }
  }
  for (size_t i = 0; i < state.numbers.size(); ++i) {
    const auto& [label, value] = state.numbers[i];
    const bool is_loss = i == 0;
    fields.push_back({is_loss ? 2 : 5, label + " " +
                                           compact(value, is_loss      ? 3
                                                          : value < 10 ? 2
                                                                       : 1)});
  }
  fields.push_back({6, "lr " + (state.lr == 0 ? "0" : short_scientific(state.lr))});
  fields.push_back({8, "|g| " + compact(state.grad_norm, 2)});
  if (state.rate > 0) {
    fields.push_back({4, with_thousands(std::llround(state.rate)) + " " + state.rate_unit + "/s"});
  }
  if (state.memory_bytes > 0) {
    fields.push_back({9, human_bytes(static_cast<uint64_t>(state.memory_bytes))});
  }
  if (state.eta_seconds >= 0 && std::isfinite(state.eta_seconds)) {
    fields.push_back({3, "ETA " + human_duration(state.eta_seconds)});
  }
  return fields;
}

/// The fields up to `max_rank`; the long form of the epoch stands in for the short one.
std::string join_fields(const std::vector<Field>& fields, int max_rank) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].rank > max_rank) continue;
    const bool long_form_follows =
        fields[i].rank == 7 && max_rank >= 10 && i + 1 < fields.size() && fields[i + 1].rank == 10;
    if (!long_form_follows) parts.push_back(fields[i].text);
  }
  return join(parts, kSeparator);
}

}  // namespace

std::string format_progress(const ProgressState& state, int columns, const std::string& activity) {
  if (columns <= 0) return "";
  const std::vector<Field> fields = fields_of(state, activity);
  std::string line;
  for (int max_rank = 10; max_rank >= 0; --max_rank) {
    line = join_fields(fields, max_rank);
    if (count_code_points(line) <= static_cast<size_t>(columns)) return line;
  }
  return ellipsis(line, static_cast<size_t>(columns));
}

}  // namespace stretto::report
