#include "families/translation/heads.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/pairs/parallel_input.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

data::DataOptions data_of(const data::DataOptions& all, const data::HeadDataOptions& own) {
  data::DataOptions data = all;
  data.heads.clear();
  data.train_src = own.train_src;
  data.train_tgt = own.train_tgt;
  data.train_tsv = own.train_tsv;
  data.train_weights = own.train_weights;
  data.valid_src = own.valid_src;
  data.valid_tgt = own.valid_tgt;
  data.valid_tsv = own.valid_tsv;
  data.test_src = own.test_src;
  data.test_tgt = own.test_tgt;
  data.test_tsv = own.test_tsv;
  data.train_src2 = own.train_src2;
  data.valid_src2 = own.valid_src2;
  data.test_src2 = own.test_src2;
  data.src_column = own.src_column;
  data.tgt_column = own.tgt_column;
  data.src2_column = own.src2_column;
  return data;
}

}  // namespace

bool Head::has_validation() const {
  return data::has_text(data, data::Split::kValid);
}

std::vector<Head> heads_of(const Experiment& experiment) {
  const auto& entries = translation_of(experiment).data.heads;
  if (translation_of(experiment).model.heads.empty()) {
    Head only;
    only.data = translation_of(experiment).data;
    return {only};
  }
  std::vector<Head> heads;
  for (const auto& head : translation_of(experiment).model.heads) {
    const auto entry = std::ranges::find(entries, head.name, &data::HeadDataOptions::head);
    if (entry == entries.end()) continue;
    heads.push_back({.name = head.name,
                     .weight = head.weight,
                     .repeat = entry->repeat,
                     .data = data_of(translation_of(experiment).data, *entry),
                     .section = "data.heads." + std::to_string(entry - entries.begin())});
  }
  return heads;
}

std::vector<std::string> head_names(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const auto& head : translation_of(experiment).model.heads) names.push_back(head.name);
  return names;
}

bool has_validation(const Experiment& experiment) {
  const auto heads = heads_of(experiment);
  return std::ranges::any_of(heads, &Head::has_validation);
}

size_t head_named(const Experiment& experiment, const std::string& wanted,
                  const std::string& option) {
  const auto& heads = translation_of(experiment).model.heads;
  if (heads.empty()) {
    if (wanted.empty()) return 0;
    throw Error(ExitCode::kUsage, option + " " + printable(wanted) + ": the run has one decoder",
                "leave " + option + " out");
  }
  const auto names = head_names(experiment);
  const auto found = std::ranges::find(names, wanted);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string all = "its heads are " + join(names, ", ");
  if (wanted.empty()) {
    throw Error(ExitCode::kUsage, "the run has several decoders, and " + option + " names none",
                all + ": add " + option + " " + names.front());
  }
  const std::string near = closest(wanted, names);
  throw Error(ExitCode::kUsage, option + " " + printable(wanted) + ": there is no such head",
              (near.empty() ? "" : "did you mean " + near + "? ") + all);
}

}  // namespace stretto::experiment
