#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "families/text_classification/engine/commands.h"
#include "families/text_classification/engine/text_classification.h"
#include "families/text_classification/text_classification_options.h"
#include "tasks/finite_answers.h"
#include "tasks/side_by_side.h"

namespace stretto::tasks {
namespace {

// Lines that are read together: enough to fill batches of similar length, few enough to stream.
constexpr size_t kLinesTogether = 2048;
constexpr int64_t kLineWarnings = 10;

/// Labels line by line.
class LineLabeller {
 public:
  LineLabeller(const InferRequest& request, const LoadedTextRun& run)
      : request_(request),
        options_(request.experiment.options.task.as<experiment::TextClassificationOptions>()),
        run_(run),
        labels_(labels_of(run.assets, options_)),
        outputs_(options_, labels(), {}),
        encoder_(*run.tokenizer.tokenizer, data::text_bound_of(options_.data)),
        passes_(run.models.front()->device()) {}

  void run(data::TextInput& input) {
    std::vector<data::InputLine> lines;
    data::InputLine line;
    while (input.next(line)) {
      lines.push_back(line);
      if (lines.size() == kLinesTogether || !input.ready()) flush(lines);
    }
    flush(lines);
    if (warnings_ > kLineWarnings) {
      log::warn(with_thousands(warnings_) + " lines in all could not be read as they are");
    }
    if (cut_lines_ > 0) {
      log::warn(counted(cut_lines_, "line") + " cut to data.max_text_tokens: " +
                counted(cut_tokens_, "token") + " were not read");
    }
  }

 private:
  const data::Labels* labels() const { return labels_ ? &*labels_ : nullptr; }
  bool pairs() const { return !options_.data.text2.empty(); }

  // All of the line is one text, also where it was meant as two.
  void warn_of_tab(const data::InputLine& line) {
    if (pairs() || told_of_tab_ || line.text.find('\t') == std::string::npos) return;
    told_of_tab_ = true;
    log::warn(
        line.place +
        ": has a tab, which is read as part of the text, since the run reads a single text "
        "from each line (data.text2 is empty); if lines are pairs of texts, give data.text2=2; "
        "if they have a label too, leave it out");
  }

  void warn_about(const data::InputLine& line, const std::string& what) {
    if (++warnings_ <= kLineWarnings) log::warn(line.place + ": " + what);
  }

  // Finds the texts of a line. @return a problem, or nothing
  std::string encode(const data::InputLine& line, text::EncodedText& text) const {
    if (!line.problem.empty()) return line.problem;
    const size_t tab = line.text.find('\t');
    // Training refuses such rows, so that no model has learned what they mean.
    const auto is_empty = [](std::string_view part) { return trim(part).empty(); };
    if (is_empty(line.text)) return "an empty text";
    if (!pairs()) {
      text = encoder_.encode(line.text);
      return "";
    }
    if (tab == std::string::npos || line.text.find('\t', tab + 1) != std::string::npos) {
      return "not two texts with a tab between them";
    }
    const std::string_view first = std::string_view(line.text).substr(0, tab);
    const std::string_view second = std::string_view(line.text).substr(tab + 1);
    if (is_empty(first) || is_empty(second)) return "an empty text";
    text = encoder_.encode(first, second);
    return "";
  }

  void flush(std::vector<data::InputLine>& lines) {
    data::LabelledSet set;
    set.samples = data::text_batch();
    add_label_column(set.samples);
    std::vector<int64_t> sample_of(lines.size(), -1);
    for (size_t i = 0; i < lines.size(); ++i) {
      text::EncodedText text;
      warn_of_tab(lines[i]);
      const std::string problem = encode(lines[i], text);
      if (!problem.empty()) {
        warn_about(lines[i], problem + "; it gets no label");
        lines[i].problem = problem;
        continue;
      }
      cut_lines_ += text.num_cut > 0 ? 1 : 0;
      cut_tokens_ += text.num_cut;
      sample_of[i] = set.size();
      set.samples.sample_ids.push_back(sample_of[i]);
      append_text(text, set.samples);
      append_no_label(set.samples);
    }
    LabelPredictions found;
    if (set.size() > 0) {
      found = predict_labels(run_.models, outputs_, set,
                             {.max_tokens = options_.eval.max_tokens,
                              .max_samples = options_.eval.max_samples,
                              .passes = &passes_});
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool is_read = sample_of[i] >= 0;
      if (is_read && found.overflowed[static_cast<size_t>(sample_of[i])] != 0) {
        refuse_not_finite(lines[i].place, "the scores of this line", request_.run_directory);
      }
      print(lines[i], is_read ? found.of(sample_of[i]) : std::span<const double>{});
    }
    flush_stdout();
    lines.clear();
  }

  // Losses need a label; nobody looks at them here.
  void add_label_column(data::Batch& batch) const {
    if (labels() == nullptr) {
      batch.columns.emplace_back(data::Ragged<float>{});
    } else {
      batch.columns.emplace_back(data::PackedTokens{});
    }
  }
  void append_no_label(data::Batch& batch) const {
    if (labels() == nullptr) {
      batch.column<float>(data::kLabelColumn).append(std::vector<float>{0});
    } else {
      batch.column<int64_t>(data::kLabelColumn).append(std::vector<int64_t>{0});
    }
  }

  void print(const data::InputLine& line, std::span<const double> found) const {
    if (request_.json) {
      print_json(line, found);
    } else if (!found.empty()) {
      print_text(found);
    }
    std::cout << "\n";
  }

  void print_text(std::span<const double> found) const {
    if (labels() == nullptr) {
      std::cout << fixed(found.front(), 6);
      return;
    }
    const auto chosen = chosen_labels(outputs_.target(), found);
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::cout << (i > 0 ? "," : "") << shown_on_stdout(labels()->name(chosen[i]));
    }
    if (!request_.text_classification.scores) return;
    for (size_t i = 0; i < found.size(); ++i) {
      std::cout << "\t" << shown_on_stdout(labels()->name(static_cast<int64_t>(i))) << "="
                << fixed(found[i], 6);
    }
  }

  void print_json(const data::InputLine& line, std::span<const double> found) const {
    nlohmann::ordered_json json{{"text", line.text}};
    if (!line.problem.empty()) json["problem"] = line.problem;
    if (!found.empty() && labels() == nullptr) json["value"] = found.front();
    if (!found.empty() && labels() != nullptr) add_labels(found, json);
    std::cout << shown_on_stdout(
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void add_labels(std::span<const double> found, nlohmann::ordered_json& json) const {
    std::vector<std::string> names;
    for (const int64_t label : chosen_labels(outputs_.target(), found)) {
      names.push_back(labels()->name(label));
    }
    if (outputs_.target() == LabelTarget::kSeveral) {
      json["labels"] = names;
    } else {
      json["label"] = names.front();
    }
    auto probabilities = nlohmann::ordered_json::object();
    for (size_t i = 0; i < found.size(); ++i) {
      probabilities[labels()->name(static_cast<int64_t>(i))] = found[i];
    }
    json["probabilities"] = std::move(probabilities);
  }

  const InferRequest& request_;
  const experiment::TextClassificationOptions& options_;
  const LoadedTextRun& run_;
  const std::optional<data::Labels> labels_;
  const LabelOutputs outputs_;
  const text::TextEncoder encoder_;
  SideBySide passes_;
  int64_t warnings_ = 0, cut_lines_ = 0, cut_tokens_ = 0;
  bool told_of_tab_ = false;
};

}  // namespace

int infer_labels(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // missing files before models load
  const auto run = load_text_run(request.experiment.options, folder, request.checkpoints,
                                 label_head_of_run, context.device);
  LineLabeller(request, run).run(input);
  return 0;
}

}  // namespace stretto::tasks
