#include <algorithm>

#include "base/text.h"
#include "config/schema.h"
#include "experiment/lint_rules.h"
#include "optim/option_readers.h"
#include "optim/precision_options.h"

namespace stretto::experiment::rules {
namespace {

using optim::OptionReaders;
using Rows = std::vector<const OptionReaders*>;

Rows rows_of(const std::string& key) {
  Rows rows;
  for (const auto& row : optim::kOptionReaders) {
    if (row.key == key) rows.push_back(&row);
  }
  return rows;
}

/// What the key that chooses is set to, and what that means: training makes something of "auto".
struct Choice {
  std::string value, meaning;

  std::string text() const {
    return value == meaning ? value : value + ", which without fp16 is " + meaning;
  }
};

Choice choice(const Subject& s, const config::Schema& schema, std::string_view chooser) {
  const auto* name = std::get<std::string*>(schema.find(std::string(chooser))->value);
  if (chooser != "train.loss_scale.name" || *name != "auto") return {*name, *name};
  return {*name, optim::may_be_fp16(s.e.train.precision) ? "fairseq" : "none"};
}

std::string is(std::string_view chooser, const std::string& value) {
  return std::string(chooser) + " = " + value;
}

/// "optim.name = sgd, lars or larc"
std::string any_of(const OptionReaders& row, const config::Schema& schema,
                   const std::string& present) {
  auto names = split(std::string(row.names), ' ');
  const auto& choices = schema.find(std::string(row.chooser))->range.choices;
  if (names.size() > 2 && names.size() + 1 == choices.size()) {
    return is(row.chooser, "any but " + present);
  }
  const std::string last = names.back();
  names.pop_back();
  return is(row.chooser, names.empty() ? last : join(names, ", ") + " or " + last);
}

}  // namespace

// A value that is not the default must have been given.
void unread_keys(const Subject& s, Remarks& out) {
  Experiment present = s.e, fallback;
  const auto schema = config::schema_of(present), defaults = config::schema_of(fallback);
  for (const auto& key : schema.keys) {
    if (config::value_text(key.value) == config::value_text(defaults.find(key.path)->value)) {
      continue;
    }
    const Rows rows = rows_of(key.path);
    const bool read = std::any_of(rows.begin(), rows.end(), [&](const OptionReaders* row) {
      return row->chooser.empty() ||
             optim::has_word(row->names, choice(s, schema, row->chooser).meaning);
    });
    if (rows.empty() || read) continue;
    std::vector<std::string> here, elsewhere;
    for (const OptionReaders* row : rows) {
      const Choice now = choice(s, schema, row->chooser);
      here.push_back(is(row->chooser, now.text()));
      elsewhere.push_back(any_of(*row, schema, now.meaning));
    }
    out.push_back({key.path, "nothing reads it with " + join(here, " and "),
                   "leave it out; it counts with " + join(elsewhere, ", or with ")});
  }
}

}  // namespace stretto::experiment::rules
