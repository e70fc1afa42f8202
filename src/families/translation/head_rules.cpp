#include "families/translation/head_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "experiment/experiment_schema.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Findings = std::vector<models::OptionConflict>;

std::string entry_key(const std::string& list, size_t number, const std::string& leaf) {
  return list + "." + std::to_string(number) + "." + leaf;
}

bool is_sound_name(const std::string& name) {
  constexpr const char* kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string::npos;
}

// A name is a part of names of tensors, and of scores.
// @return how many names nobody can rely on
size_t check_names(const Experiment& e, Findings& found) {
  const auto names = head_names(e);
  const size_t before = found.size();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string key = entry_key("model.heads", i, "name");
    const auto here = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (names[i].empty()) {
      found.push_back({{key}, "a head has no name", "commands, scores and data.heads need one"});
    } else if (!is_sound_name(names[i])) {
      found.push_back({{key},
                       "`" + printable(names[i]) + "` is no name of a head",
                       "use letters, digits, `_` and `-` alone"});
    } else if (std::find(names.begin(), here, names[i]) != here) {
      found.push_back({{key}, "there are two heads `" + names[i] + "`", "rename one of them"});
    }
  }
  return found.size() - before;
}

// What stands in the entries of the lists instead.
void check_left_alone(const Experiment& e, Findings& found) {
  const auto of_decoder =
      changed_keys(e, [](const std::string& key) { return key.starts_with("model.decoder."); });
  for (const auto& key : of_decoder) {
    found.push_back({{key, "model.heads"},
                     "model.heads takes the place of model.decoder",
                     "move it to [model.heads.decoder] below the [[model.heads]] that it is for"});
  }
  const auto of_text = changed_keys(e, [](const std::string& key) {
    if (!key.starts_with("data.") || key.starts_with("data.heads.")) return false;
    const std::string leaf = key.substr(5);
    return leaf.starts_with("train_") || leaf.starts_with("valid_") || leaf.starts_with("test_") ||
           leaf.ends_with("_column");
  });
  for (const auto& key : of_text) {
    found.push_back({{key, "model.heads"},
                     "each of model.heads has its text in data.heads",
                     "move it to the [[data.heads]] that it is for"});
  }
}

// Processes run micro-batches of different heads at once.
void check_batch_norm(const Experiment& e, Findings& found) {
  if (e.dist.batch_norm != "all" || !models::has_batch_norm(translation_of(e).model)) return;
  found.push_back({{"dist.batch_norm", "model.heads", "model.norm_layer"},
                   "\"all\" adds up the rows of all processes, which are in different decoders",
                   "use dist.batch_norm = \"worker\", or another model.norm_layer"});
}

// Entries that are of no head, or of one that has another. What is only the consequence of a name
// that cannot be relied on is not told again.
// @param bad_names  of model.heads; @return how many entries are not those of their heads
size_t check_entries(const Experiment& e, size_t bad_names, Findings& found) {
  const auto names = head_names(e);
  auto sound = names;
  std::erase_if(sound, [](const std::string& name) { return !is_sound_name(name); });
  const auto& entries = translation_of(e).data.heads;
  const size_t before = found.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string key = entry_key("data.heads", i, "head");
    const std::string& name = entries[i].head;
    const auto same = [&](const auto& entry) { return entry.head == name; };
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = name.empty() ? "" : closest(name, sound);
      if (near.empty() && bad_names > 0) {
        --bad_names;
        continue;
      }
      found.push_back({{key, "model.heads"},
                       name.empty() ? "does not say whose text this is"
                                    : "there is no head `" + printable(name) + "`",
                       (near.empty() ? "" : "did you mean " + near + "? ") + "the heads are " +
                           join(names, ", ")});
    } else if (std::any_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(i),
                           same)) {
      found.push_back({{key},
                       "there are two entries for head `" + name + "`",
                       "its lists take several files: join the two"});
    }
  }
  return found.size() - before;
}

// @param bad_entries  of data.heads, each of which may be the one that is missing
void check_text_of_each(const Experiment& e, size_t bad_entries, Findings& found) {
  const auto names = head_names(e);
  const auto& entries = translation_of(e).data.heads;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto same = [&](const auto& entry) { return entry.head == names[i]; };
    if (!is_sound_name(names[i]) || std::any_of(entries.begin(), entries.end(), same)) continue;
    if (bad_entries > 0) {
      --bad_entries;
      continue;
    }
    found.push_back(
        {{entry_key("model.heads", i, "name"), "data.heads"},
         "head `" + names[i] + "` has no data",
         "add [[data.heads]] with head = \"" + names[i] + "\", train_src and train_tgt"});
  }
}

}  // namespace

std::vector<models::OptionConflict> head_problems(const Experiment& experiment) {
  Findings found;
  if (translation_of(experiment).model.heads.empty()) {
    if (!translation_of(experiment).data.heads.empty()) {
      found.push_back({{"data.heads.0.head", "model.heads"},
                       "is text for one of several decoders, and the model has one",
                       "give model.heads, or name the text in [data]"});
    }
    return found;
  }
  const size_t bad_names = check_names(experiment, found);
  check_left_alone(experiment, found);
  check_batch_norm(experiment, found);
  const size_t bad_entries = check_entries(experiment, bad_names, found);
  check_text_of_each(experiment, bad_entries, found);
  return found;
}

}  // namespace stretto::experiment
