#include "families/translation/two_source_rules.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "data/pairs/two_sources.h"
#include "experiment/experiment_schema.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

/// The keys of one split of one head's text.
struct SplitFiles {
  std::string name;  ///< "data.train", "data.heads.0.train"
  const std::vector<std::string>&src, &src2, &tsv;

  std::string key(const char* side) const { return name + side; }
};

std::array<SplitFiles, 3> splits_of(const Head& head) {
  const auto& d = head.data;
  const std::string section = head.section + ".";
  return {{{section + "train", d.train_src, d.train_src2, d.train_tsv},
           {section + "valid", d.valid_src, d.valid_src2, d.valid_tsv},
           {section + "test", d.test_src, d.test_src2, d.test_tsv}}};
}

std::string counted_files(size_t count) {
  return counted(static_cast<int64_t>(count), "file");
}

// One encoder.
void note_second_sources(const Head& head, std::vector<models::OptionConflict>& found) {
  const char* remedy = "write [[model.encoders]] twice, once for each source, or leave it out";
  for (const SplitFiles& split : splits_of(head)) {
    if (split.src2.empty()) continue;
    found.push_back({{split.key("_src2"), "model.encoders"},
                     "names a second source, and the model has one encoder",
                     remedy});
  }
  if (head.data.src2_column == 0) return;
  found.push_back({{head.section + ".src2_column", "model.encoders"},
                   "is the column of a second source, and the model has one encoder",
                   remedy});
}

// Two encoders.
void note_missing_sources(const Head& head, std::vector<models::OptionConflict>& found) {
  const auto& d = head.data;
  const std::string column = head.section + ".src2_column";
  bool any_tsv = false;
  for (const SplitFiles& split : splits_of(head)) {
    any_tsv = any_tsv || !split.tsv.empty();
    if (split.src.size() == split.src2.size()) continue;
    const std::string key = split.key("_src"), second = split.key("_src2");
    found.push_back({{second, key, "model.encoders"},
                     "a model of two encoders needs a second source for each file of " + key +
                         ": there are " + counted_files(split.src2.size()) + " for " +
                         counted_files(split.src.size()),
                     "name the second sources in the order of " + key + ", line for line"});
  }
  if (!any_tsv) return;
  if (d.src2_column == 0) {
    found.push_back({{column, head.section + ".train_tsv", "model.encoders"},
                     "a model of two encoders needs the column of the second source in TSV files",
                     "set it to that column, from 1"});
  } else if (d.src2_column == d.src_column || d.src2_column == d.tgt_column) {
    const bool source = d.src2_column == d.src_column;
    found.push_back({{column, head.section + (source ? ".src_column" : ".tgt_column")},
                     "the second source and the " + std::string(source ? "first" : "target") +
                         " are one column, " + std::to_string(d.src2_column),
                     "columns count from 1"});
  }
}

void note_short_bound(const Experiment& e, std::vector<models::OptionConflict>& found) {
  if (translation_of(e).data.max_src_tokens >= data::kLeastTokensOfTwoSources) return;
  found.push_back({{"data.max_src_tokens", "model.encoders"},
                   counted(translation_of(e).data.max_src_tokens, "token") +
                       " cannot hold two sources, each with its end-of-sentence",
                   "raise it to at least " + std::to_string(data::kLeastTokensOfTwoSources)});
}

void note_unread_encoder(const Experiment& e, std::vector<models::OptionConflict>& found) {
  const auto changed =
      changed_keys(e, [](const std::string& key) { return key.starts_with("model.encoder."); });
  if (changed.empty()) return;
  found.push_back({{changed.front(), "model.encoders"},
                   "is a key of [model.encoder], which a model of [[model.encoders]] does not have",
                   "move it into one of [[model.encoders]], or leave it out"});
}

}  // namespace

std::vector<models::OptionConflict> two_source_problems(const Experiment& experiment) {
  std::vector<models::OptionConflict> found;
  const auto& model = translation_of(experiment).model;
  if (!model.encoders.empty()) note_unread_encoder(experiment, found);
  const bool two = models::has_two_encoders(model);
  if (!model.encoders.empty() && !two) return found;  // models/option_conflicts.h tells it
  for (const Head& head : heads_of(experiment)) {
    two ? note_missing_sources(head, found) : note_second_sources(head, found);
  }
  if (two) note_short_bound(experiment, found);
  return found;
}

}  // namespace stretto::experiment
