#include "families/language_model/folders/rope.h"

#include <cmath>
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

/// YaRN's, of which DeepSeek's models take a quotient.
double sharpness(double factor, double scale) {
  constexpr double kSlope = 0.1;
  return factor <= 1 ? 1 : kSlope * scale * std::log(factor) + 1;
}

void read_yarn_rope(const ConfigReader& scaling, int64_t max_positions, nn::RotaryOptions& rope) {
  rope.factor = required_number(scaling, "factor");
  rope.original_positions =
      scaling.integer("original_max_position_embeddings", max_positions, 1, kMaxRopePositions);
  rope.fast_rotations = scaling.number("beta_fast", 32);
  rope.slow_rotations = scaling.number("beta_slow", 1);
  rope.attention_factor = scaling.number("attention_factor", 0);
  const double own = scaling.number("mscale", 0), of_all = scaling.number("mscale_all_dim", 0);
  if (rope.attention_factor == 0 && own != 0 && of_all != 0) {
    rope.attention_factor = sharpness(rope.factor, own) / sharpness(rope.factor, of_all);
    if (!std::isfinite(rope.attention_factor) || rope.attention_factor <= 0) {
      scaling.refuse("mscale", "and `mscale_all_dim` give no factor above 0",
                     "correct them, or give attention_factor alone");
    }
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
  } else if (type == "dynamic") {
    scaling.refuse(key, "is `dynamic`: angles depend on the length of a text, and here they do not",
                   "texts of up to max_position_embeddings tokens are not scaled: for these, set "
                   "rope_scaling to null in config.json");
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
