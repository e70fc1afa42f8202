#include "experiment/smaller_model.h"

#include <cstdint>
#include <variant>

#include "base/error.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"

namespace stretto::experiment {
namespace {

constexpr const char* kOtherParts = "take out feed-forward units instead";

/// The keys of the stack whose tensors begin with `prefix`.
class StackSection {
 public:
  StackSection(const Experiment& options, const std::string& prefix)
      : own_(options), schema_(experiment_schema(own_)) {
    const std::string stack = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1);
    for (const std::string& section : {"model." + stack, std::string("model")}) {
      if (schema_.find(section + ".num_layers") == nullptr) continue;
      section_ = section;
      return;
    }
    throw Error(ExitCode::kUsage,
                "`" + prefix + "layers`: [model] has no key for the number of its layers",
                "parts can be taken out of Transformers, not of this kind of model");
  }

  std::string key(const std::string& leaf) const { return section_ + "." + leaf; }
  bool has(const std::string& leaf) const { return schema_.find(key(leaf)) != nullptr; }
  /// A whole number; 0 where there is no such key.
  int64_t number(const std::string& leaf) const {
    const auto* found = schema_.find(key(leaf));
    if (found == nullptr) return 0;
    const auto* const* value = std::get_if<int64_t*>(&found->value);
    return value == nullptr ? 0 : **value;
  }
  /// A text of [model]; empty where there is no such key.
  std::string text_of_model(const std::string& leaf) const {
    const auto* found = schema_.find("model." + leaf);
    if (found == nullptr) return "";
    const auto* const* value = std::get_if<std::string*>(&found->value);
    return value == nullptr ? "" : **value;
  }

 private:
  Experiment own_;  // the schema points into it
  config::Schema schema_;
  std::string section_;
};

void require_alike_layers(const StackSection& section) {
  if (section.number("full_attention_every") == 0) return;
  throw Error(ExitCode::kUsage,
              section.key("full_attention_every") +
                  ": layers differ by their number, and with fewer of them others had windows",
              kOtherParts);
}

void require_heads_of_their_own(const StackSection& section, const compress::StackShape& shape) {
  if (!section.has("head_dim")) {
    throw Error(ExitCode::kUsage,
                "heads of `" + shape.prefix +
                    "layers` cannot be taken out: their width follows from " +
                    section.key("num_heads"),
                "take out feed-forward units or layers instead");
  }
  const std::string positions = section.text_of_model("positions");
  if (positions != "alibi" && positions != "t5") return;
  throw Error(ExitCode::kUsage,
              "model.positions = \"" + positions +
                  "\": what distances mean depends on the number "
                  "of a head",
              "take out feed-forward units or layers instead");
}

}  // namespace

std::vector<SizeSetting> smaller_model_settings(const Experiment& options,
                                                const compress::StackShape& now,
                                                const compress::StackShape& left) {
  std::vector<SizeSetting> settings;
  if (left == now) return settings;
  const StackSection section(options, now.prefix);
  const auto set = [&](const std::string& leaf, int64_t value) {
    settings.push_back({section.key(leaf), value});
  };
  if (left.num_layers != now.num_layers) {
    require_alike_layers(section);
    set("num_layers", left.num_layers);
  }
  if (left.ffn_dim != now.ffn_dim) set("ffn_dim", left.ffn_dim);
  if (left.num_heads == now.num_heads) return settings;
  require_heads_of_their_own(section, now);
  set("num_heads", left.num_heads);
  set("head_dim", left.head_dim);
  if (section.number("num_kv_heads") > 0) set("num_kv_heads", left.num_kv_heads);
  return settings;
}

Experiment with_sizes(Experiment options, const std::vector<SizeSetting>& settings) {
  const config::Schema schema = experiment_schema(options);
  for (const SizeSetting& setting : settings) {
    const auto* key = schema.find(setting.key);
    if (key == nullptr) throw Error(ExitCode::kInternal, "no key " + setting.key);
    *std::get<int64_t*>(key->value) = setting.value;
  }
  return options;
}

}  // namespace stretto::experiment
