#include "families/language_model/folders/rope.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMaxRopePositions = 100'000'000;

double required_number(const ConfigReader& scaling, const char* key) {
  if (!scaling.has(key)) scaling.refuse(key, "is missing", "the config.json is not whole");
  return scaling.number(key, 0);
}

void read_llama3_rope(const ConfigReader& scaling, nn::RotaryOptions& rope) {
  rope.factor = required_number(scaling, "factor");
  rope.low_frequency_factor = required_number(scaling, "low_freq_factor");
  rope.high_frequency_factor = required_number(scaling, "high_freq_factor");
  rope.original_positions =
      scaling.integer("original_max_position_embeddings", 1, kMaxRopePositions);
}

void read_yarn_rope(const ConfigReader& scaling, int64_t max_positions, nn::RotaryOptions& rope) {
  rope.factor = required_number(scaling, "factor");
  rope.original_positions =
      scaling.integer("original_max_position_embeddings", max_positions, 1, kMaxRopePositions);
  rope.fast_rotations = scaling.number("beta_fast", 32);
  rope.slow_rotations = scaling.number("beta_slow", 1);
  rope.attention_factor = scaling.number("attention_factor", 0);
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    if (scaling.has(key)) scaling.refuse(key, "is given: attention_factor alone is known");
  }
  if (!scaling.flag("truncate", true)) {
    scaling.refuse("truncate", "is false: the borders of the passage are whole numbers here");
  }
}

void read_rope_scaling(const ConfigReader& scaling, int64_t max_positions,
                       nn::RotaryOptions& rope) {
  const char* key = scaling.has("rope_type") ? "rope_type" : "type";
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (scaling.has(kind)) scaling.refuse(kind, "is there: all layers have the same angles here");
  }
  const std::string type = scaling.text(key, "default");
  rope.scaling = type == "default" ? "none" : type;
  if (type == "default") return;
  if (type == "linear") {
    rope.factor = required_number(scaling, "factor");
  } else if (type == "llama3") {
    read_llama3_rope(scaling, rope);
  } else if (type == "yarn") {
    read_yarn_rope(scaling, max_positions, rope);
  } else {
    scaling.refuse(key, "is `" + printable(type) + "`",
                   "default, linear, llama3 and yarn are known; a model with another scaling would "
                   "compute other numbers here");
  }
}

}  // namespace

nn::RotaryOptions read_rope(const ConfigReader& config, int64_t max_positions) {
  nn::RotaryOptions rope;
  rope.base = config.number("rope_theta", 10000);
  double turned = config.number("partial_rotary_factor", 1);
  const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (config.has(key)) {
    const ConfigReader scaling = config.object(key);
    rope.base = scaling.number("rope_theta", rope.base);
    turned = scaling.number("partial_rotary_factor", turned);
    read_rope_scaling(scaling, max_positions, rope);
  }
  if (turned != 1) {
    config.refuse("partial_rotary_factor", "is not 1: heads are turned as a whole here");
  }
  return rope;
}

void write_rope(const nn::RotaryOptions& rope, nlohmann::ordered_json& config) {
  config["rope_theta"] = rope.base;
  if (rope.scaling == "none") {
    config["rope_scaling"] = nullptr;
    return;
  }
  nlohmann::ordered_json scaling{{"rope_type", rope.scaling}, {"factor", rope.factor}};
  if (rope.scaling == "llama3") {
    scaling["low_freq_factor"] = rope.low_frequency_factor;
    scaling["high_freq_factor"] = rope.high_frequency_factor;
  }
  if (rope.scaling == "yarn") {
    scaling["beta_fast"] = rope.fast_rotations;
    scaling["beta_slow"] = rope.slow_rotations;
    if (rope.attention_factor > 0) scaling["attention_factor"] = rope.attention_factor;
  }
  if (rope.scaling != "linear") {
    scaling["original_max_position_embeddings"] = rope.original_positions;
  }
  config["rope_scaling"] = scaling;
}

}  // namespace stretto::interchange
