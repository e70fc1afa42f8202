#include <ATen/Parallel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/pairs/pair_columns.h"
#include "data/pairs/two_sources.h"
#include "data/text_input.h"
#include "families/translation/engine/commands.h"
#include "families/translation/engine/load_run.h"
#include "families/translation/engine/second_source.h"
#include "families/translation/engine/side_lines.h"
#include "families/translation/engine/translator.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"
#include "report/line_progress.h"
#include "report/terminal.h"
#include "tasks/finite_answers.h"

namespace stretto::tasks {
namespace {

// Lines that are translated together: enough to fill batches of similar length for each thread, few
// enough that output streams.
constexpr int64_t kLinesPerThread = 256, kMostLines = 4096;
constexpr size_t kBufferBytes = size_t{1} << 20;

// Of the lines that cannot be translated as they are; the rest is counted.
constexpr int64_t kWarningsShown = 10;

/// One line on its way through the model.
struct Line {
  data::InputLine input;
  std::string prefix;
  std::vector<int64_t> src;
  int64_t cut_tokens = 0;  ///< behind data.max_src_tokens, which the model does not see
};

bool is_file(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

/// A prompt for whoever types at a terminal and reads stderr there.
class Prompt {
 public:
  explicit Prompt(data::TextInput& input)
      : input_(input), possible_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {}

  /// Before the next line is read.
  void show() {
    if (!possible_ || !input_.waits_for_a_person()) return;
    if (!shown_) log::info("type a line to translate and press Enter; Ctrl-D ends");
    shown_ = true;
    report::write_stderr("> ");
  }
  /// When there was none.
  void leave() const {
    if (shown_) report::write_stderr("\n");
  }

 private:
  data::TextInput& input_;
  const bool possible_;
  bool shown_ = false;
};

/// Translates line by line and prints.
class LineTranslator {
 public:
  LineTranslator(const InferRequest& request, LoadedRun run)
      : request_(request),
        run_(std::move(run)),
        translator_(run_.models, translation_of(request.experiment.options).decode),
        two_sources_(models::has_two_encoders(translation_of(request.experiment.options).model)) {
    const auto& asked = request.translation;
    if (!asked.prefix_file.empty()) {
      prefixes_.emplace(prefix_file(asked.prefix_file), request.files);
    }
    if (!asked.src2_file.empty()) {
      second_sources_.emplace(second_source_file(asked.src2_file), request.files);
    }
  }

  void run(data::TextInput& input) {
    const auto start = std::chrono::steady_clock::now();
    start_progress();
    Prompt prompt(input);
    const auto together =
        static_cast<size_t>(std::min(kLinesPerThread * at::get_num_threads(), kMostLines));
    std::vector<Line> lines;
    Line line;
    size_t bytes = 0;
    const auto next = [&] {
      prompt.show();
      return input.next(line.input);
    };
    while (next()) {
      if (!read_second_source(line)) {
        flush(lines);
        second_sources_->throw_too_few(first_ + 1, input);
      }
      if (!read_prefix(line)) {
        flush(lines);
        prefixes_->throw_too_few(first_ + 1, input);
      }
      bytes += line.input.text.size();
      lines.push_back(line);
      if (lines.size() == together || bytes >= kBufferBytes || !input.ready()) {
        flush(lines);
        bytes = 0;
      }
    }
    flush(lines);
    progress_.reset();
    prompt.leave();
    if (second_sources_) second_sources_->require_end(first_);
    if (prefixes_) prefixes_->require_end(first_);
    if (warnings_ > kWarningsShown) {
      log::warn(with_thousands(warnings_) + " lines in all could not be translated as they are");
    }
    tell_of_cuts();
    if (request_.translation.stats) {
      const double seconds = seconds_since(start);
      log::info(counted(first_, "line") + " in " + counted(translator_.num_batches(), "batch") +
                ", " + counted(target_tokens_, "target token") + ", " + fixed(seconds, 2) + " s");
    }
  }

 private:
  void start_progress() {
    const bool named = data::TextInput::are_files(request_.files);
    const bool from_file = named || (request_.files.empty() && is_file(STDIN_FILENO));
    const auto kind = report::line_progress_kind(from_file, request_.translation.stats);
    const bool counts = named && kind != report::LineProgress::Kind::kNone;
    progress_.emplace(kind, counts ? *data::TextInput::count_lines(request_.files) : -1);
  }

  // The line's text becomes "FIRST<TAB>SECOND". @return false when there is no second source for it
  bool read_second_source(Line& line) {
    if (!two_sources_) return true;
    data::InputLine second;
    if (second_sources_ && !second_sources_->next(second)) return false;
    if (!line.input.problem.empty()) return true;
    JoinedLine joined;
    if (!second_sources_) {
      joined = joined_line(line.input.text);
    } else if (second.problem.empty()) {
      joined = joined_line(line.input.text, second.text);
    } else {
      joined.problem = "its second source, " + second.place + ": " + second.problem;
    }
    line.input.text = std::move(joined.text);
    line.input.problem = std::move(joined.problem);
    return true;
  }

  // @return false when there is no prefix for the line
  bool read_prefix(Line& line) {
    if (!prefixes_) return true;
    data::InputLine prefix;
    if (!prefixes_->next(prefix)) return false;
    line.prefix = prefix.text;
    if (!prefix.problem.empty() && line.input.problem.empty()) {
      line.input.problem = "its prefix, " + prefix.place + ": " + prefix.problem;
    }
    return true;
  }

  void warn_about(const Line& line, const std::string& what) {
    if (++warnings_ <= kWarningsShown) log::warn(line.input.place + ": " + what);
  }

  void flush(std::vector<Line>& lines) {
    std::vector<TranslationRequest> requests;
    std::vector<size_t> places;  // of the lines that hold something
    for (size_t i = 0; i < lines.size(); ++i) {
      auto& line = lines[i];
      line.src.clear();
      line.cut_tokens = 0;
      if (!line.input.problem.empty()) {
        warn_about(line, line.input.problem + "; its translation is empty");
        continue;
      }
      encode(line);
      if (line.src.empty()) continue;
      shorten(line);
      line.src.push_back(run_.tokenizers.src->specials().eos);
      TranslationRequest request{
          .src = line.src, .prefix = {}, .sentence_id = first_ + static_cast<int64_t>(i)};
      if (!line.prefix.empty()) run_.tokenizers.tgt->encode(line.prefix, request.prefix);
      requests.push_back(std::move(request));
      places.push_back(i);
    }
    const int64_t before = translator_.num_sentences();
    const auto results = translator_.translate(
        requests, {}, [&] { progress_->update(first_ + translator_.num_sentences() - before); });
    size_t next = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool translated = next < places.size() && places[next] == i;
      if (translated) require_finite(lines[i], results[next]);
      print(lines[i], translated ? results[next] : std::vector<decoding::Hypothesis>{});
      next += translated ? 1 : 0;
    }
    flush_stdout();
    first_ += static_cast<int64_t>(lines.size());
    progress_->update(first_);
    lines.clear();
  }

  void require_finite(const Line& line, const std::vector<decoding::Hypothesis>& found) const {
    for (const auto& hypothesis : found) {
      if (std::isfinite(hypothesis.score)) continue;
      refuse_not_finite(line.input.place, "the translation of this line", request_.run_directory);
    }
  }

  void encode(Line& line) const {
    if (two_sources_) {
      data::encode_sources(*run_.tokenizers.src, line.input.text, line.src);
    } else {
      run_.tokenizers.src->encode(line.input.text, line.src);
    }
  }

  // What the text lost in all: of many lines only the first are warned of one by one.
  void tell_of_cuts() const {
    if (cut_.lines == 0) return;
    const double share = static_cast<double>(cut_.tokens) / static_cast<double>(src_tokens_);
    log::warn(counted(cut_.lines, "line") + (cut_.lines == 1 ? " was" : " were") +
              " cut to data.max_src_tokens: " + percent_text(share) +
              " of all source tokens were not translated");
  }

  void shorten(Line& line) {
    const auto longest =
        static_cast<size_t>(translation_of(request_.experiment.options).data.max_src_tokens) - 1;
    src_tokens_ += static_cast<int64_t>(line.src.size());
    if (line.src.size() <= longest) return;
    line.cut_tokens = static_cast<int64_t>(line.src.size() - longest);
    cut_.lines += 1;
    cut_.tokens += line.cut_tokens;
    warn_about(line, counted(static_cast<int64_t>(line.src.size()), "token") + ", cut to " +
                         std::to_string(longest) + " (data.max_src_tokens)");
    if (two_sources_) {
      data::cut_sources(line.src, static_cast<int64_t>(longest),
                        run_.tokenizers.src->specials().eos);
    } else {
      line.src.resize(longest);
    }
  }

  // `decode.nbest` lines for each line of input, empty ones where there are no more hypotheses: a
  // reader who counts never falls out of step.
  void print(const Line& line, const std::vector<decoding::Hypothesis>& hypotheses) {
    for (const auto& hypothesis : hypotheses) {
      target_tokens_ += static_cast<int64_t>(hypothesis.ids.size()) + 1;
    }
    if (request_.json) {
      print_json(line, hypotheses);
      return;
    }
    const auto nbest =
        static_cast<size_t>(translation_of(request_.experiment.options).decode.nbest);
    for (size_t i = 0; i < nbest; ++i) {
      if (i < hypotheses.size()) print_text(line, hypotheses[i]);
      std::cout << "\n";
    }
  }

  void print_text(const Line& line, const decoding::Hypothesis& hypothesis) {
    if (request_.translation.scores) std::cout << fixed(hypothesis.score, 4) << "\t";
    std::cout << shown_on_stdout(run_.tokenizers.tgt->decode(hypothesis.ids));
    if (request_.translation.alignments) std::cout << "\t" << alignment_text(line, hypothesis);
  }

  void print_json(const Line& line, const std::vector<decoding::Hypothesis>& hypotheses) {
    nlohmann::ordered_json json{{"source", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    if (line.cut_tokens > 0) json["cut_tokens"] = line.cut_tokens;
    auto list = nlohmann::ordered_json::array();
    for (const auto& hypothesis : hypotheses) {
      nlohmann::ordered_json entry{{"text", run_.tokenizers.tgt->decode(hypothesis.ids)},
                                   {"score", hypothesis.score},
                                   {"log_prob", hypothesis.log_prob},
                                   {"token_log_probs", hypothesis.token_log_probs}};
      auto names = nlohmann::ordered_json::array();
      for (const int64_t id : hypothesis.ids) names.push_back(run_.tokenizers.tgt->piece(id));
      entry["pieces"] = names;
      if (request_.translation.alignments) entry["alignment"] = alignment(line, hypothesis);
      list.push_back(entry);
    }
    json["hypotheses"] = list;
    std::cout << shown_on_stdout(
                     json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
              << "\n";
  }

  // For each target piece the source piece it looks at most: mean cross-attention of one layer.
  std::vector<std::pair<int64_t, int64_t>> alignment(const Line& line,
                                                     const decoding::Hypothesis& hypothesis) {
    std::vector<int64_t> target = hypothesis.ids;
    target.push_back(run_.tokenizers.tgt->specials().eos);
    data::Batch batch = data::pair_batch({0});
    data::source(batch).append(line.src);
    data::target(batch).append(target);
    const auto map = run_.models.front()->alignments(
        batch, translation_of(request_.experiment.options).decode.alignment_layer);
    const auto best = map.front().argmax(1).cpu();
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (int64_t i = 0; i < static_cast<int64_t>(hypothesis.ids.size()); ++i) {
      pairs.emplace_back(best[i].item<int64_t>(), i);
    }
    return pairs;
  }

  std::string alignment_text(const Line& line, const decoding::Hypothesis& hypothesis) {
    std::vector<std::string> parts;
    for (const auto& [source, target] : alignment(line, hypothesis)) {
      parts.push_back(std::to_string(source) + "-" + std::to_string(target));
    }
    return join(parts, " ");
  }

  const InferRequest& request_;
  LoadedRun run_;
  Translator translator_;
  const bool two_sources_;
  std::optional<SideLines> prefixes_, second_sources_;
  std::optional<report::LineProgress> progress_;
  int64_t first_ = 0;  // lines already done
  int64_t warnings_ = 0;
  int64_t target_tokens_ = 0, src_tokens_ = 0;
  struct {
    int64_t lines = 0, tokens = 0;
  } cut_;
};

}  // namespace

int translate_lines(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  require_second_source(request.experiment.options, request.translation.src2_file);
  data::TextInput input(request.files);  // a missing file is told before models load
  const auto& head = request.translation.head;
  experiment::head_named(request.experiment.options, head, "--head");
  LoadedRun run =
      load_translation_run(request.experiment.options, folder, request.checkpoints, context.device);
  run.models = models_of_head(run, head);
  LineTranslator translator(request, std::move(run));
  translator.run(input);
  return 0;
}

}  // namespace stretto::tasks
