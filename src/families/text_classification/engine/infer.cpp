#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text_classification/engine/commands.h"
#include "families/text_classification/engine/text_classification.h"
#include "families/text_classification/requests.h"
#include "families/text_classification/text_classification_options.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

struct LabelledLine : WorkLine {
  text::EncodedText text = {};
  std::vector<double> outputs = {};  ///< probabilities [L], or a value
  bool is_finite = true;
};

/// Labels line by line.
class LineLabeller : public LineFamily<LabelledLine> {
 public:
  LineLabeller(const InferRequest& request, const LoadedTextRun& run)
      : request_(request),
        options_(request.experiment.options.task.as<experiment::TextClassificationOptions>()),
        models_(run.models),
        labels_(labels_of(run.assets, options_)),
        outputs_(options_, labels(), {}),
        encoder_(*run.tokenizer.tokenizer, data::text_bound_of(options_.data)) {}

  void prepare(LabelledLine& line) const override {
    try {
      line.input.problem = encode(line.input.text, line.text);
    } catch (const Error& error) {  // the text of a pair that is not cut leaves no room
      line.input.problem = error.what();
    }
    line.num_tokens = std::ssize(line.text.ids) + line.text.num_cut;
    line.cut_tokens = line.text.num_cut;
  }

  /// Tells once of a tab: all of the line is one text, also where it was meant as two.
  void arrange(std::span<LabelledLine> window) override {
    const auto line = std::ranges::find_if(window, [](const LabelledLine& one) {
      return one.input.text.find('\t') != std::string::npos;
    });
    if (pairs() || has_told_of_tab_ || line == window.end()) return;
    has_told_of_tab_ = true;
    log::warn(
        line->input.place +
        ": has a tab, which is read as part of the text, since the run reads a single text "
        "from each line (data.text2 is empty); if lines are pairs of texts, give data.text2=2; "
        "if they have a label too, leave it out");
  }

  int64_t cost(const LabelledLine& line) const override { return std::ssize(line.text.ids); }

  void run(std::span<LabelledLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    data::Batch batch = data::text_batch();
    for (const LabelledLine* line : lines) {
      batch.sample_ids.push_back(line->number);
      append_text(line->text, batch);
    }
    train::Prepared texts = prepare_texts(std::move(batch), *models_.front());
    texts.send(models_.front()->device());
    const auto predicted = predict_batch(models_, outputs_, texts);
    const auto outputs = predicted.probabilities.to(at::kCPU, at::kDouble).contiguous();
    const auto overflowed = predicted.overflowed.to(at::kCPU).contiguous();
    const double* from = outputs.const_data_ptr<double>();
    const double* is_bad = overflowed.const_data_ptr<double>();
    for (LabelledLine* line : lines) {
      line->outputs.assign(from, from + outputs.size(1));
      line->is_finite = *is_bad++ == 0;
      from += outputs.size(1);
    }
  }

  bool is_finite(const LabelledLine& line) const override { return line.is_finite; }

  void write(std::span<const LabelledLine> lines) override {
    for (const LabelledLine& line : lines) {
      std::cout << (request_.json ? json_of(line) : text_of(line.outputs) + "\n");
    }
  }

 private:
  const data::Labels* labels() const { return labels_ ? &*labels_ : nullptr; }
  bool pairs() const { return !options_.data.text2.empty(); }

  // Finds the texts of a line. @return a problem, or nothing
  std::string encode(const std::string& line, text::EncodedText& text) const {
    const size_t tab = line.find('\t');
    // Training refuses such rows, so that no model has learned what they mean.
    const auto is_empty = [](std::string_view part) { return trim(part).empty(); };
    if (is_empty(line)) return "an empty text";
    if (!pairs()) {
      text = encoder_.encode(line);
      return "";
    }
    if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos) {
      return "not two texts with a tab between them";
    }
    const std::string_view first = std::string_view(line).substr(0, tab);
    const std::string_view second = std::string_view(line).substr(tab + 1);
    if (is_empty(first) || is_empty(second)) return "an empty text";
    text = encoder_.encode(first, second);
    return "";
  }

  /// @param found  empty where the line has a problem
  std::string text_of(std::span<const double> found) const {
    if (found.empty()) return "";
    if (labels() == nullptr) return fixed(found.front(), 6);
    std::vector<std::string> names;
    for (const int64_t label : chosen_labels(outputs_.target(), found)) {
      names.push_back(shown_on_stdout(labels()->name(label)));
    }
    std::string text = join(names, ",");
    if (!request_.own.as<TextClassificationInferArguments>().scores) return text;
    for (size_t i = 0; i < found.size(); ++i) {
      text += "\t" + shown_on_stdout(labels()->name(static_cast<int64_t>(i))) + "=" +
              fixed(found[i], 6);
    }
    return text;
  }

  std::string json_of(const LabelledLine& line) const {
    nlohmann::ordered_json json{{"text", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    const auto& found = line.outputs;
    if (!found.empty() && labels() == nullptr) json["value"] = found.front();
    if (!found.empty() && labels() != nullptr) add_labels(found, json);
    return json_line(json);
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
  const std::vector<std::shared_ptr<models::TextModel>>& models_;
  const std::optional<data::Labels> labels_;
  const LabelOutputs outputs_;
  const text::TextEncoder encoder_;
  bool has_told_of_tab_ = false;
};

}  // namespace

int infer_labels(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // missing files before models load
  const auto run = load_text_run(request.experiment.options, folder, request.checkpoints,
                                 label_head_of_run, context.device);
  LineLabeller labeller(request, run);
  const at::Device device = run.models.front()->device();
  const auto& eval =
      request.experiment.options.task.as<experiment::TextClassificationOptions>().eval;
  answer_lines(labeller, input,
               {.files = request.files,
                .run = request.run_directory,
                .device = device,
                .max_lines = 2048,
                .batches = {.order = CostOrder::kShortestFirst,
                            .max_cost = batch_tokens(eval.max_tokens, device),
                            .max_samples = eval.max_samples},
                .words = {.answer = "the scores of this line",
                          .problem = "it gets no label",
                          .cut_to = "data.max_text_tokens",
                          .cut_share = "of all tokens were not read"},
                .stats = request.stats});
  return 0;
}

}  // namespace stretto::tasks
