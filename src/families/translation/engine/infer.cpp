#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/two_sources.h"
#include "families/translation/engine/commands.h"
#include "families/translation/engine/load_run.h"
#include "families/translation/engine/second_source.h"
#include "families/translation/engine/shortlist_file.h"
#include "families/translation/engine/side_lines.h"
#include "families/translation/engine/translator.h"
#include "families/translation/heads.h"
#include "families/translation/requests.h"
#include "families/translation/translation_options.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

/// Positions in the source and in the target.
using Alignment = std::vector<std::pair<int64_t, int64_t>>;

struct TranslatedLine : WorkLine {
  std::string prefix = {};
  TranslationRequest request = {};  ///< without source ids where there is nothing to translate
  std::vector<decoding::Hypothesis> found = {};
  std::vector<Alignment> alignments = {};  ///< of each hypothesis, where they are asked for
};

/// Lines of the input with what stands in the line of the same number in `--src2` and `--prefix`.
class TranslationSource : public LineSource<TranslatedLine> {
 public:
  TranslationSource(data::TextInput& input, const InferRequest& request)
      : input_(input),
        has_two_sources_(
            models::has_two_encoders(translation_of(request.experiment.options).model)) {
    const auto& asked = request.own.as<TranslationInferFiles>();
    if (!asked.prefix_file.empty()) {
      prefixes_.emplace(prefix_file(asked.prefix_file), request.files);
    }
    if (!asked.src2_file.empty()) {
      second_sources_.emplace(second_source_file(asked.src2_file), request.files);
    }
  }

  bool next(TranslatedLine& line) override {
    if (!input_.next(line.input)) return false;
    ++num_lines_;
    if (has_two_sources_) read_second_source(line.input);
    if (prefixes_) read_prefix(line);
    return true;
  }
  bool ready() override { return input_.ready(); }
  bool waits_for_a_person() override { return input_.waits_for_a_person(); }

  /// Behind the last answer: what writes a side file may wait for it. Throws Error(kBadData) where
  /// such a file has more lines.
  void require_end() {
    if (second_sources_) second_sources_->require_end(num_lines_);
    if (prefixes_) prefixes_->require_end(num_lines_);
  }

 private:
  // The line's text becomes "FIRST<TAB>SECOND".
  void read_second_source(data::InputLine& line) {
    data::InputLine second;
    if (second_sources_ && !second_sources_->next(second)) {
      second_sources_->throw_too_few(num_lines_, input_);
    }
    if (!line.problem.empty()) return;
    JoinedLine joined;
    if (!second_sources_) {
      joined = joined_line(line.text);
    } else if (second.problem.empty()) {
      joined = joined_line(line.text, second.text);
    } else {
      joined.problem = "its second source, " + second.place + ": " + second.problem;
    }
    line.text = std::move(joined.text);
    line.problem = std::move(joined.problem);
  }

  void read_prefix(TranslatedLine& line) {
    data::InputLine prefix;
    if (!prefixes_->next(prefix)) prefixes_->throw_too_few(num_lines_, input_);
    line.prefix = prefix.text;
    if (!prefix.problem.empty() && line.input.problem.empty()) {
      line.input.problem = "its prefix, " + prefix.place + ": " + prefix.problem;
    }
  }

  data::TextInput& input_;
  const bool has_two_sources_;
  std::optional<SideLines> prefixes_, second_sources_;
  int64_t num_lines_ = 0;  ///< read so far
};

/// Translates line by line and prints.
class LineTranslator : public LineFamily<TranslatedLine> {
 public:
  LineTranslator(const InferRequest& request, const LoadedRun& run)
      : request_(request),
        asked_(request.own.as<TranslationInferFiles>()),
        options_(translation_of(request.experiment.options)),
        run_(run),
        translator_(run_.models, options_.decode, open_shortlist(options_.decode, run_.tokenizers)),
        has_two_sources_(models::has_two_encoders(options_.model)) {}

  CostBatchOptions batches() const { return translator_.batches(); }

  void prepare(TranslatedLine& line) const override {
    auto& src = line.request.src;
    if (has_two_sources_) {
      data::encode_sources(*run_.tokenizers.src, line.input.text, src);
    } else {
      run_.tokenizers.src->encode(line.input.text, src);
    }
    if (src.empty()) return;
    shorten(line);
    src.push_back(run_.tokenizers.src->specials().eos);
    if (!line.prefix.empty()) run_.tokenizers.tgt->encode(line.prefix, line.request.prefix);
    line.request.sentence_id = line.number;
  }

  int64_t cost(const TranslatedLine& line) const override { return translator_.cost(line.request); }

  // Where sentences enter a batch as others end, all threads take them from one queue.
  void arrange(std::span<TranslatedLine> window) override {
    if (!translator_.shares_queue()) return;
    queued_.clear();
    for (TranslatedLine& line : window) {
      if (line.input.problem.empty() && cost(line) > 0) queued_.push_back(&line);
    }
    std::ranges::stable_sort(queued_, [this](const TranslatedLine* a, const TranslatedLine* b) {
      return cost(*a) > cost(*b);
    });
    std::vector<const TranslationRequest*> requests;
    for (const TranslatedLine* line : queued_) requests.push_back(&line->request);
    queue_ = translator_.queue(std::move(requests), at::get_num_threads());
  }

  void run(std::span<TranslatedLine* const> lines,
           const std::function<void()>& beat) const override {
    if (queue_) {
      translator_.stream(
          *queue_,
          [this](size_t place, Translator::Found found) {
            queued_[place]->found = std::move(found);
            if (asked_.alignments) align(*queued_[place]);
          },
          beat);
      return;
    }
    std::vector<const TranslationRequest*> requests;
    for (const TranslatedLine* line : lines) requests.push_back(&line->request);
    auto found = translator_.search(requests, beat);
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i]->found = std::move(found[i]);
      if (asked_.alignments) align(*lines[i]);
    }
  }

  /// What was chosen had finite log-probabilities. Without a rule that may forbid every token there
  /// is no hypothesis where the model gave all tokens the probability 0.
  bool is_finite(const TranslatedLine& line) const override {
    const auto& decode = options_.decode;
    const bool may_forbid_all =
        decode.no_repeat_ngram > 0 || !decode.shortlist.empty() || !line.request.prefix.empty();
    if (line.found.empty()) return may_forbid_all;
    return std::ranges::all_of(line.found, [](const decoding::Hypothesis& one) {
      return std::isfinite(one.score) && std::isfinite(one.log_prob) &&
             std::ranges::all_of(one.token_log_probs, [](float x) { return std::isfinite(x); });
    });
  }

  void write(std::span<const TranslatedLine> lines) override {
    for (const TranslatedLine& line : lines) {
      for (const auto& hypothesis : line.found) {
        target_tokens_ += std::ssize(hypothesis.ids) + 1;
      }
      std::cout << (request_.json ? json_of(line) : text_of(line));
    }
  }

  std::string counts() const override { return counted(target_tokens_, "target token"); }

 private:
  void shorten(TranslatedLine& line) const {
    auto& src = line.request.src;
    const auto longest = static_cast<size_t>(options_.data.max_src_tokens) - 1;
    line.num_tokens = std::ssize(src);
    if (src.size() <= longest) return;
    line.cut_tokens = line.num_tokens - static_cast<int64_t>(longest);
    line.note = counted(line.num_tokens, "token") + ", cut to " + std::to_string(longest) +
                " (data.max_src_tokens)";
    if (has_two_sources_) {
      data::cut_sources(src, static_cast<int64_t>(longest), run_.tokenizers.src->specials().eos);
    } else {
      src.resize(longest);
    }
  }

  // For each target piece the source piece it looks at most: mean cross-attention of one layer.
  void align(TranslatedLine& line) const {
    for (const auto& hypothesis : line.found) {
      std::vector<int64_t> target = hypothesis.ids;
      target.push_back(run_.tokenizers.tgt->specials().eos);
      data::Batch batch = data::pair_batch({0});
      data::source(batch).append(line.request.src);
      data::target(batch).append(target);
      const auto map =
          run_.models.front()->alignments(batch, options_.decode.alignment_layer).front();
      const auto best = map.argmax(1).cpu();
      auto& pairs = line.alignments.emplace_back();
      for (int64_t i = 0; i < std::ssize(hypothesis.ids); ++i) {
        pairs.emplace_back(best[i].item<int64_t>(), i);
      }
    }
  }

  // `decode.nbest` lines for each line of input, empty ones where there are no more hypotheses: a
  // reader who counts never falls out of step.
  std::string text_of(const TranslatedLine& line) const {
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(options_.decode.nbest); ++i) {
      if (i < line.found.size()) text += hypothesis_text(line, i);
      text += "\n";
    }
    return text;
  }

  std::string hypothesis_text(const TranslatedLine& line, size_t number) const {
    const auto& hypothesis = line.found[number];
    std::string text;
    if (asked_.scores) text += fixed(hypothesis.score, 4) + "\t";
    text += shown_on_stdout(run_.tokenizers.tgt->decode(hypothesis.ids));
    if (!asked_.alignments) return text;
    std::vector<std::string> parts;
    for (const auto& [source, target] : line.alignments[number]) {
      parts.push_back(std::to_string(source) + "-" + std::to_string(target));
    }
    return text + "\t" + join(parts, " ");
  }

  std::string json_of(const TranslatedLine& line) const {
    nlohmann::ordered_json json{{"source", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    if (line.cut_tokens > 0) json["cut_tokens"] = line.cut_tokens;
    auto list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < line.found.size(); ++i) {
      const auto& hypothesis = line.found[i];
      nlohmann::ordered_json entry{{"text", run_.tokenizers.tgt->decode(hypothesis.ids)},
                                   {"score", hypothesis.score},
                                   {"log_prob", hypothesis.log_prob},
                                   {"token_log_probs", hypothesis.token_log_probs}};
      auto names = nlohmann::ordered_json::array();
      for (const int64_t id : hypothesis.ids) names.push_back(run_.tokenizers.tgt->piece(id));
      entry["pieces"] = names;
      if (asked_.alignments) entry["alignment"] = line.alignments[i];
      list.push_back(entry);
    }
    json["hypotheses"] = list;
    return json_line(json);
  }

  const InferRequest& request_;
  const TranslationInferFiles& asked_;
  const experiment::TranslationOptions& options_;
  const LoadedRun& run_;
  const Translator translator_;
  const bool has_two_sources_;
  std::vector<TranslatedLine*> queued_ = {};            ///< of a window, longest first
  std::shared_ptr<Translator::Queue> queue_ = nullptr;  ///< of their requests
  int64_t target_tokens_ = 0;
};

}  // namespace

int translate_lines(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& asked = request.own.as<TranslationInferFiles>();
  require_second_source(request.experiment.options, asked.src2_file);
  data::TextInput input(request.files);  // a missing file is told before models load
  experiment::head_named(request.experiment.options, asked.head, "--head");
  LoadedRun run =
      load_translation_run(request.experiment.options, folder, request.checkpoints, context.device);
  run.models = models_of_head(run, asked.head);
  TranslationSource lines(input, request);
  LineTranslator translator(request, run);
  constexpr int64_t kLinesOfThread = 256, kMostLines = 4096;
  LineWork<TranslatedLine> work(translator,
                                {.files = request.files,
                                 .run = request.run_directory,
                                 .device = context.device,
                                 .max_lines = static_cast<size_t>(
                                     std::min(kLinesOfThread * at::get_num_threads(), kMostLines)),
                                 .max_bytes = size_t{1} << 20,
                                 .batches = translator.batches(),
                                 .words = {.answer = "the translation of this line",
                                           .problem = "its translation is empty",
                                           .cut_to = "data.max_src_tokens",
                                           .cut_share = "of all source tokens were not translated"},
                                 .stats = request.stats});
  work.run(lines);
  lines.require_end();
  work.finish();
  return 0;
}

}  // namespace stretto::tasks
