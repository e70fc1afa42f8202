#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "families/text/folders/architecture.h"

namespace stretto::interchange {

/// What config.json says of a model.
struct ModelConfig {
  const Architecture* architecture = nullptr;
  std::string model_class;  ///< of `architectures`; empty when there is none
  ModelDescription description;
};

/// @param encoder_only  the head that it names is left out, whatever it is
/// Throws Error(kBadData) that names the key: an architecture or a head that is not known, and
/// whatever the model here cannot be equal to.
ModelConfig read_model_config(const ConfigReader& config, bool encoder_only);
ModelConfig read_model_config(std::string_view bytes, const std::string& where, bool encoder_only);

/// The head that `architectures` names; nothing where it names one that is not known. Throws as
/// read_model_config() for an architecture that is not known.
std::optional<Head> find_head(const ConfigReader& config);

/// config.json of this description, which the architecture expresses.
std::string write_model_config(const Architecture& architecture,
                               const ModelDescription& description);

}  // namespace stretto::interchange
