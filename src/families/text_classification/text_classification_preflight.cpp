#include "families/text_classification/text_classification_preflight.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/text.h"
#include "data/bad_samples.h"
#include "data/labelled/labelled_samples.h"
#include "families/text_classification/text_classification_options.h"
#include "text/encoded_text.h"

namespace stretto::experiment {
namespace {

// Whether a key that says how rows are read is unreliable.
bool is_reading_in_doubt(const std::vector<config::Problem>& known) {
  bool in_doubt = false;
  data::LabelledOptions::reading_fields().for_each([&](const auto& field) {
    in_doubt = in_doubt || config::is_unreliable(known, "data." + field.name);
  });
  return in_doubt;
}

class LabelledPreflight {
 public:
  LabelledPreflight(const Experiment& experiment, const std::vector<config::Problem>& known,
                    const PreflightOptions& how)
      : text_(text_sections(experiment)),
        data_(experiment.task.as<TextClassificationOptions>().data),
        loss_(experiment.task.as<TextClassificationOptions>().loss),
        known_(known),
        time_(how),
        keeps_(how.keeps) {}

  Preflight run() {
    if (is_reading_in_doubt(known_)) return {};
    read_training();
    doubt_labels();
    read_validation();
    doubt_headers();
    return std::move(found_);
  }

 private:
  // Reads files to their end, or as far as the time allows, as training does. What was seen of
  // them counts even where it throws.
  data::LabelledFacts read(const std::vector<std::string>& files, const std::string& key) {
    const data::LabelledInput input{.paths = files,
                                    .columns = data::columns_of(data_),
                                    .labels = labels_ ? &*labels_ : nullptr};
    const data::ReadBudget budget{.end = time_.end()};
    data::LabelledFacts facts;
    const auto take = [&] {
      for (const auto& header : facts.headers) {
        headers_.push_back({key, data::place_of(input, header), header.row});
      }
      names_.insert(facts.labels.begin(), facts.labels.end());
      if (!facts.unread.empty()) found_.unread.push_back({key, facts.unread});
    };
    try {
      if (keeps_) {
        data::open_labelled_texts(input, data::labelled_cache_of(data_), budget, facts);
      } else {
        data::scan_labelled(input, budget, facts);
      }
    } catch (...) {
      take();
      throw;
    }
    take();
    if (facts.unread.empty()) data::require_samples(input, facts);
    return facts;
  }

  void read_training() {
    const std::string key = "data.train";
    if (data_.train.empty() || config::is_unreliable(known_, key)) return;
    note_stop(found_, Stage::kTraining, key, [&] {
      if (!data_.labels.empty()) labels_ = data::Labels::given(data_.labels);
      const auto facts = read(data_.train, key);
      if (!facts.unread.empty()) return;
      found_.most_batches = most_batches(text_, facts.rows + facts.other_labels);
      if (data::finds_labels(data_)) labels_ = data::labels_of(data_, &facts);
    });
    look_at_weights();
  }

  // Looks at the labels of training; those of validation alone are unknown ones.
  void doubt_labels() {
    if (!labels_) return;
    for (const auto& alike : data::labels_alike(labels_->names())) {
      found_.doubts.push_back({data_.labels.empty() ? "data.train" : "data.labels",
                               "labels " + alike, data::kLabelsAlikeAdvice});
    }
  }

  // Beside data.labels the rules have compared them.
  void look_at_weights() {
    const std::string key = "loss.class_weight_list";
    if (!labels_ || !data_.labels.empty() || loss_.class_weights != "list") return;
    if (config::is_unreliable(known_, key) || config::is_unreliable(known_, "loss.class_weights")) {
      return;
    }
    note_stop(found_, Stage::kTraining, key,
              [&] { data::require_weight_of_each(*labels_, loss_.class_weight_list.size()); });
  }

  void read_validation() {
    const std::string key = "data.valid";
    if (data_.valid.empty() || config::is_unreliable(known_, key)) return;
    note_stop(found_, Stage::kValidation, key, [&] { read(data_.valid, key); });
    if (!labels_ && !data_.is_regression() && found_.stops.empty()) {
      found_.unread.push_back({"data.labels", "whether training has every label of validation"});
    }
  }

  // A file that serves both training and validation is reported once.
  void doubt_headers() {
    std::unordered_set<std::string> told;
    for (const auto& [key, place, row] : headers_) {
      const auto is_label = [&](const std::string& name) { return names_.contains(name); };
      if (!data::is_sample(row, is_label) || !told.insert(place).second) continue;
      found_.doubts.push_back(
          {key, data::sample_as_header_text(place), data::kSampleAsHeaderAdvice});
    }
  }

  struct Header {
    std::string key, place;
    data::LabelledRow row;
  };

  const TextSections text_;
  const data::LabelledOptions& data_;
  const losses::LabelLossOptions& loss_;
  const std::vector<config::Problem>& known_;
  const PreflightTimer time_;
  const bool keeps_;
  std::optional<data::Labels> labels_;     ///< once all of them are known
  std::unordered_set<std::string> names_;  ///< labels of the rows that were read
  std::vector<Header> headers_;            ///< that may be samples
  Preflight found_;
};

}  // namespace

SeenTokens count_labelled_tokens(const Experiment& experiment,
                                 const std::vector<std::string>& files,
                                 const text::Tokenizer& tokenizer, const PreflightTimer& time) {
  const auto& options = experiment.task.as<TextClassificationOptions>().data;
  const auto columns = data::columns_of(options);
  const text::TextEncoder encoder(tokenizer, data::text_bound_of(options));
  const int64_t unknown = tokenizer.specials().unk;
  SeenTokens seen;
  data::BadSamples bad(columns.bad_samples);
  for (const auto& path : files) {
    data::LabelledReader reader(path, columns, &bad);
    for (data::LabelledRow row; reader.next(row);) {
      if (!time.is_left()) {
        bad.end_file();
        seen.unread = path + " from line " + with_thousands(row.line) + " on";
        return seen;
      }
      const auto text =
          options.text2.empty() ? encoder.encode(row.text) : encoder.encode(row.text, row.text2);
      seen.counts.tokens += std::ssize(text.ids);
      if (unknown < 0) continue;
      seen.counts.unknown += std::count(text.ids.begin(), text.ids.end(), unknown);
    }
  }
  return seen;
}

Preflight text_classification_preflight(const Experiment& options,
                                        const std::vector<config::Problem>& known,
                                        const PreflightOptions& how) {
  return LabelledPreflight(options, known, how).run();
}

}  // namespace stretto::experiment
