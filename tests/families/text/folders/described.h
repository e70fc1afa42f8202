#pragma once

#include <stdexcept>
#include <string>

#include "experiment/family_spec.h"
#include "families/text/folders/model_config.h"
#include "families/text/folders/text_folders.h"

namespace stretto::testing {

/// The run that `stretto import` makes of a folder with this config.json, whose texts are pieces of
/// words.
inline experiment::Experiment described_by(const std::string& config) {
  using namespace interchange;
  const auto model = read_model_config(config, "config.json", /*encoder_only=*/false);
  for (const auto& family : experiment::families()) {
    const auto* folders =
        family.folders == nullptr ? nullptr : dynamic_cast<const TextFolders*>(&family.folders());
    if (folders == nullptr || folders->head() != model.description.head) continue;
    return folders->experiment_of(model.description, {});
  }
  throw std::logic_error("no family has the head of " + model.model_class);
}

}  // namespace stretto::testing
