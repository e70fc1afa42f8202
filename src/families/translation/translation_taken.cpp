#include "families/translation/translation_taken.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/paths.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/taken_parts.h"
#include "families/translation/causal_parts.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

// One part of a model, and what several of them are called.
struct PartKeys {
  const char *single, *list, *tensors;
};
constexpr std::array kPartKeys{PartKeys{"model.encoder", "model.encoders", "encoder."},
                               PartKeys{"model.decoder", "model.heads", "decoder."}};

// How a run trains, which is no part of its model: its LoRA is merged into weights.
bool is_of_training(const std::string& key) {
  return key == "model.init" || key.starts_with("model.lora.");
}

bool is_below_part(const std::string& key) {
  return std::any_of(kPartKeys.begin(), kPartKeys.end(), [&](const PartKeys& part) {
    return key.starts_with(std::string(part.single) + ".") ||
           key.starts_with(std::string(part.list) + ".");
  });
}

class TranslationValues {
 public:
  TranslationValues(const OtherModel& other, const Experiment& own, const config::Origins& given)
      : theirs_(other.options),
        own_(own),
        given_(given),
        is_part_(!other.is_own && !own.train.init_only.empty()),
        taken_(is_part_ ? own.train.init_only : std::vector<std::string>(), other.tensors),
        their_schema_(experiment_schema(theirs_)),
        own_schema_(experiment_schema(own_)) {}

  std::vector<TakenValue> found() {
    if (!is_part_ || taken_.takes("", "")) add_model();
    for (const PartKeys& part : kPartKeys) is_part_ ? add_taken(part) : add_part(part);
    // So many rows have the tables.
    const std::string rows = "tokenizer.vocab_multiple";
    if (own_.train.init_vocabulary == "same") add(*their_schema_.find(rows), rows);
    return std::move(values_);
  }

 private:
  void add(const config::Key& key, const std::string& own_path) {
    values_.push_back({own_path, config::value_text(key.value)});
  }

  void add_model() {
    for (const auto& key : their_schema_.keys) {
      if (!key.path.starts_with("model.") || is_below_part(key.path)) continue;
      if (!is_of_training(key.path)) add(key, key.path);
    }
  }

  // Keys below a section of theirs, for one of this model's.
  void add_section(const std::string& there, const std::string& here) {
    for (const auto& key : their_schema_.keys) {
      if (key.path.starts_with(there + ".")) add(key, here + key.path.substr(there.size()));
    }
  }

  bool gives_key_below(const std::string& section) const {
    return std::any_of(own_schema_.keys.begin(), own_schema_.keys.end(), [&](const auto& key) {
      return key.path.starts_with(section + ".") && given_.given(key.path);
    });
  }

  // A part of another kind has other keys.
  bool chooses_other_kind(const std::string& section, const std::string& there) const {
    const std::string name = section + ".name";
    const auto *own = own_schema_.find(name), *theirs = their_schema_.find(there + ".name");
    return given_.given(name) && own != nullptr && theirs != nullptr &&
           config::value_text(own->value) != config::value_text(theirs->value);
  }

  void add_part(const PartKeys& part) {
    if (given_.given(part.list)) return;  // a list is one value
    const auto* list = their_schema_.find_list(part.list);
    if (list != nullptr && list->size > 0) {
      if (!gives_key_below(part.single)) add_section(part.list, part.list);
    } else if (!chooses_other_kind(part.single, part.single)) {
      add_section(part.single, part.single);
    }
  }

  // Where tensors of theirs begin that belong to a section of a list: "encoders.1.", "decoders.de."
  std::string tensors_of(const PartKeys& part, size_t entry) const {
    const std::string number = std::to_string(entry);
    if (std::string_view(part.list) == "model.encoders") return "encoders." + number + ".";
    return "decoders." + translation_of(theirs_).model.heads.at(entry).name + ".";
  }

  // `train.init_only`: the one part takes the keys of that from which it takes layers.
  void add_taken(const PartKeys& part) {
    if (given_.given(part.list)) return;
    const auto take = [&](const std::string& there, const std::string& tensors) {
      if (!taken_.takes_layers(part.tensors, tensors)) return false;
      if (!chooses_other_kind(part.single, there)) add_section(there, part.single);
      return true;
    };
    const auto* list = their_schema_.find_list(part.list);
    const size_t size = list == nullptr ? 0 : list->size;
    if (size == 0) {
      take(part.single, part.tensors);
      return;
    }
    const bool is_head = std::string_view(part.list) == "model.heads";
    for (size_t i = 0; i < size; ++i) {
      if (take(list->entry_path(i) + (is_head ? ".decoder" : ""), tensors_of(part, i))) return;
    }
  }

  Experiment theirs_, own_;  // the schemas are bound to them
  const config::Origins& given_;
  bool is_part_;
  TakenParts taken_;
  config::Schema their_schema_, own_schema_;
  std::vector<TakenValue> values_;
};

}  // namespace

std::vector<TakenValue> translation_values_of(const OtherModel& other, const Experiment& own,
                                              const config::Origins& given) {
  if (!other.options.task.is<TranslationOptions>()) {
    return values_of_language_model(other, own, given);
  }
  return TranslationValues(other, own, given).found();
}

}  // namespace stretto::experiment
