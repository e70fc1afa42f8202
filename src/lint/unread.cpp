#include <algorithm>

#include "base/text.h"
#include "experiment/experiment_schema.h"
#include "experiment/tensor_patterns.h"
#include "lint/rules.h"
#include "optim/precision_options.h"

namespace stretto::lint::rules {
namespace {

using config::Key;
using config::ReadWith;
using config::Schema;

/// What a key that chooses is set to, and what that means: training makes something of "auto".
struct Choice {
  std::string key, value, meaning;

  std::string text() const {
    return key + " = " + value + (value == meaning ? "" : ", which without fp16 is " + meaning);
  }
};

std::vector<Choice> choices(const Subject& s, const Schema& schema, const ReadWith& reader) {
  std::vector<Choice> made;
  for (const auto& key : s.task.deciding_keys(s.e, reader.deciding_key)) {
    const std::string name = config::chosen_value(*schema.find(key));
    const bool automatic = key == "train.loss_scale.name" && name == "auto";
    const char* scaled = optim::may_be_fp16(s.e.train.precision) ? "fairseq" : "none";
    made.push_back({key, name, automatic ? scaled : name});
  }
  return made;
}

/// What keeps a key from being read.
struct UnreadReason {
  std::vector<std::string> here;       ///< how the keys are set that choose
  std::vector<std::string> elsewhere;  ///< with what it would count
};

// A key that chooses as it should, and that nothing reads itself, is told by what keeps that one.
void add_unread_reason(const Subject& s, const Schema& schema, const Key& key,
                       UnreadReason& found) {
  for (const auto& reader : key.readers) {
    const auto made = choices(s, schema, reader);
    const auto fitting = std::find_if(made.begin(), made.end(), [&](const Choice& choice) {
      return config::reads_with(reader, choice.meaning);
    });
    if (fitting != made.end()) {
      add_unread_reason(s, schema, *schema.find(fitting->key), found);
      continue;
    }
    for (const Choice& choice : made) found.here.push_back(choice.text());
    found.elsewhere.push_back(config::reader_text(reader, schema));
  }
}

// Of `model.dropout` it is `model.encoder.dropout` where a part has that, and reads it.
std::vector<std::string> read_below(const Subject& s, const Schema& schema, const Key& key) {
  const size_t dot = key.path.rfind('.');
  const std::string section = key.path.substr(0, dot + 1), leaf = key.path.substr(dot);
  std::vector<std::string> found;
  for (const auto& other : schema.keys) {
    const bool is_below = other.path.starts_with(section) && other.path.ends_with(leaf);
    if (is_below && other.path != key.path && is_read(s, schema, other)) {
      found.push_back("`" + other.path + "`");
    }
  }
  return found;
}

}  // namespace

bool is_read(const Subject& s, const Schema& schema, const Key& key) {
  return key.readers.empty() ||
         std::any_of(key.readers.begin(), key.readers.end(), [&](const ReadWith& reader) {
           const auto made = choices(s, schema, reader);
           return std::any_of(made.begin(), made.end(), [&](const Choice& choice) {
             return config::reads_with(reader, choice.meaning) &&
                    is_read(s, schema, *schema.find(choice.key));
           });
         });
}

// A value that is not the default must have been given.
void unread_keys(const Subject& s, Remarks& out) {
  experiment::Experiment present = s.e, fallback;
  const auto schema = experiment::experiment_schema(present),
             defaults = experiment::defaults_beside(schema, fallback);
  for (const auto& key : schema.keys) {
    const auto& fallback_value = defaults.find(key.path)->value;
    const bool is_default = config::value_text(key.value) == config::value_text(fallback_value);
    if (is_default || is_read(s, schema, key)) continue;
    UnreadReason found;
    add_unread_reason(s, schema, key, found);
    const auto below = read_below(s, schema, key);
    const std::string meant = below.empty() ? "" : ", or give " + join(below, " and ") + " instead";
    out.push_back(
        {key.path, "nothing reads it with " + join(found.here, " and "),
         "leave it out" + meant + "; it counts with " + join(found.elsewhere, ", or with ")});
  }
}

// The softmax gives every row of an output projection a gradient.
void nothing_to_be_lazy_with(const Subject& s, Remarks& out) {
  if (s.e.optim.name != "lazy_adam" || !s.e.optim.lazy_tables.empty()) return;
  const auto tied = s.task.tied_embedding(s.e);
  if (!tied) return;
  out.push_back({"optim.name",
                 "the only embedding is the output projection too (" + tied->setting +
                     "), so that every row has a gradient: lazy_adam is adam here",
                 "use optim.name = \"adam\", or " + tied->others});
}

void noise_on_frozen_tensors(const Subject& s, Remarks& out) {
  if (s.e.optim.weight_noise == 0 || s.e.train.freeze.empty()) return;
  const auto plan = experiment::training_plan(s.e);
  const auto all_frozen = [&](const auto& has_noise) {
    bool any = false;
    for (const auto& tensor : s.context.tensors) {
      if (!has_noise(tensor)) continue;
      if (!plan.freezes(tensor)) return false;
      any = true;
    }
    return any;
  };
  const auto& patterns = s.e.optim.weight_noise_tensors;
  const auto is_matrix = [](const optim::TensorName& tensor) { return !tensor.is_vector; };
  if (patterns.empty() && all_frozen(is_matrix)) {
    out.push_back({"optim.weight_noise",
                   "every matrix is frozen (train.freeze), and frozen tensors have no noise",
                   "leave it out, or name tensors that train in optim.weight_noise_tensors"});
  }
  for (const std::string& pattern : patterns) {
    const auto is_named = [&](const optim::TensorName& tensor) {
      return optim::matches(pattern, tensor.name);
    };
    if (!all_frozen(is_named)) continue;
    out.push_back({"optim.weight_noise_tensors",
                   "`" + printable(pattern) +
                       "` matches frozen tensors alone (train.freeze), which have no noise",
                   "leave the pattern out, or name tensors that train"});
  }
}

}  // namespace stretto::lint::rules
