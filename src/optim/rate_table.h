#pragma once

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "optim/group_options.h"

/// Which learning rate each part of a model has, for people. No libtorch, as optim/group_options.h.
namespace stretto::optim {

/// Tensors of one rate.
struct RateRow {
  double lr_scale = 1;  ///< share of the update's rate
  int64_t num_tensors = 0;
  std::vector<std::string> places;  ///< "encoder.layers.3", "encoder.embedding", "head.output"
};

/// Where a tensor stands: its layer, or its name without the last part.
inline std::string place_of(const std::string& name) {
  if (const auto place = place_in_stack(name)) {
    return place->stack + "layers." + std::to_string(place->layer);
  }
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

/// A row for each rate that optim.layer_decay and optim.groups give, the largest first. Entries
/// that cannot be read are left out.
inline std::vector<RateRow> rate_table(const OptimOptions& options,
                                       std::span<const TensorName> tensors) {
  std::vector<ParameterGroup> groups;
  for (const std::string& entry : options.groups) {
    ParameterGroup group;
    if (!read_group(entry, group)) groups.push_back(group);
  }
  const auto settings = settings_of(options, groups, tensors);
  std::vector<RateRow> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const RateRow& other) {
      return other.lr_scale == settings[i].lr_scale;
    });
    if (row == rows.end()) row = rows.insert(rows.end(), {.lr_scale = settings[i].lr_scale});
    ++row->num_tensors;
    const std::string place = place_of(tensors[i].name);
    const bool is_new =
        std::find(row->places.begin(), row->places.end(), place) == row->places.end();
    if (is_new) row->places.push_back(place);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RateRow& a, const RateRow& b) { return a.lr_scale > b.lr_scale; });
  return rows;
}

/// "0.2824" of 0.9 to the power of 12: four digits are enough for people.
inline std::string share_text(double share) {
  std::ostringstream text;
  text << std::setprecision(4) << share;
  return text.str();
}

/// "1: head.pooler, head.output; 0.9: encoder.layers.1; 0.81: encoder.layers.0; …"
inline std::string rates_text(const OptimOptions& options, std::span<const TensorName> tensors) {
  std::vector<std::string> rows;
  for (const RateRow& row : rate_table(options, tensors)) {
    rows.push_back(share_text(row.lr_scale) + ": " + join(row.places, ", "));
  }
  return join(rows, "; ");
}

}  // namespace stretto::optim
