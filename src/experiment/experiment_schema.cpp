#include "experiment/experiment_schema.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "experiment/foreign_options.h"
#include "experiment/schedule_length.h"

namespace stretto::experiment {

static_assert(config::lists_every_member<Experiment>);

namespace {

// Sections in the order in which files have them, whoever declares them. Hashes of runs go by it.
constexpr std::array<std::string_view, 14> kSections{
    "run",      "task",  "data",     "tokenizer", "model", "loss",   "optim",
    "schedule", "train", "compress", "dist",      "eval",  "decode", "report"};

std::ptrdiff_t rank_of(const std::string& path) {
  const std::string_view top = std::string_view(path).substr(0, path.find('.'));
  return std::find(kSections.begin(), kSections.end(), top) - kSections.begin();
}

template <class Items>
void sort_by_section(Items& items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const auto& a, const auto& b) { return rank_of(a.path) < rank_of(b.path); });
}

// Brings one list to the length, or one section to the part, that it has in `present`.
// @return whether there was one, so that the keys are to be bound again
bool take_one(const config::Schema& present, const config::Schema& defaults) {
  for (const auto& wanted : present.lists) {
    const auto* list = defaults.find_list(wanted.path);
    if (list == nullptr || list->size == wanted.size) continue;
    list->make(wanted.size);
    return true;
  }
  for (const auto& wanted : present.switches) {
    const auto* section = defaults.find_switch(wanted.section);
    if (section == nullptr || defaults.chosen(*section) == present.chosen(wanted)) continue;
    section->select(present.chosen(wanted));
    return true;
  }
  return false;
}

}  // namespace

config::Schema experiment_schema(Experiment& options) {
  config::Schema schema = config::schema_of(options);
  sort_by_section(schema.sections);
  sort_by_section(schema.keys);
  sort_by_section(schema.lists);
  schema.bound_again = [&options] { return experiment_schema(options); };
  schema.resolve_defaults = [&options] { resolve_defaults(options, config::Origins()); };
  schema.foreign = foreign_options();
  return schema;
}

config::Schema defaults_beside(const config::Schema& present, Experiment& fallback) {
  config::Schema defaults = experiment_schema(fallback);
  // A part or an entry may have parts and lists itself, so that one brings the next.
  while (take_one(present, defaults)) defaults = experiment_schema(fallback);
  return defaults;
}

std::vector<std::string> changed_keys(const Experiment& experiment,
                                      const std::function<bool(const std::string&)>& asked) {
  Experiment own = experiment, beside, untouched;
  const auto schema = experiment_schema(own), plain = experiment_schema(untouched);
  const auto defaults = defaults_beside(schema, beside);
  std::vector<std::string> keys;
  for (const auto& key : schema.keys) {
    if (!asked(key.path)) continue;
    const auto* before = (key.path.ends_with(".name") ? plain : defaults).find(key.path);
    const bool same =
        before != nullptr && config::value_text(before->value) == config::value_text(key.value);
    if (!same) keys.push_back(key.path);
  }
  return keys;
}

}  // namespace stretto::experiment
