#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "nn/rotary_options.h"

namespace stretto::interchange {

class ConfigReader;

/// The angles of rotary positions by config.json: `rope_theta` and `rope_scaling`, or
/// `rope_parameters` of transformers 5.
/// @param max_positions  the original length of yarn where the file does not say it
/// Throws Error(kBadData) that names the key: for a kind of scaling that is not known (dynamic,
/// longrope), and for one whose keys are incomplete.
nn::RotaryOptions read_rope(const ConfigReader& config, int64_t max_positions);
/// The same two keys, as transformers 4 and 5 read them.
void write_rope(const nn::RotaryOptions& rope, nlohmann::ordered_json& config);

}  // namespace stretto::interchange
