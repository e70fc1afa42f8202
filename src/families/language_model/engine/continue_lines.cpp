#include "families/language_model/engine/continue_lines.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "families/language_model/generation_requests.h"
#include "kernels/gemm/gemm.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

struct ContinuedLine : WorkLine {
  GenerationRequest request = {};  ///< without a prompt where there is nothing to continue
  std::vector<Continuation> found = {};
};

/// The prompts of the command line.
class PromptSource : public LineSource<ContinuedLine> {
 public:
  explicit PromptSource(const std::vector<std::string>& prompts) : prompts_(prompts) {}
  bool next(ContinuedLine& line) override {
    if (next_ == prompts_.size()) return false;
    line.input = {.place = "--prompt", .text = prompts_[next_++], .problem = {}};
    return true;
  }
  bool ready() override { return true; }

 private:
  const std::vector<std::string>& prompts_;
  size_t next_ = 0;
};

/// As a text of its own is printed, with its line ends.
std::string text_on_stdout(std::string_view text) {
  std::string shown;
  for (;;) {
    const size_t end = text.find('\n');
    shown += shown_on_stdout(text.substr(0, end));
    if (end == std::string_view::npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

/// As one of many is printed: a line stays one line.
std::string line_on_stdout(std::string_view text) {
  std::string line;
  for (const char byte : text) {
    if (byte == '\n') {
      line += "\\n";
    } else if (byte == '\r') {
      line += "\\r";
    } else {
      line += byte;
    }
  }
  return shown_on_stdout(line);
}

const char* name_of_end(decoding::OutputEnd end) {
  switch (end) {
    case decoding::OutputEnd::kStop:
      return "stop";
    case decoding::OutputEnd::kBound:
      return "length";
    case decoding::OutputEnd::kToken:
      break;
  }
  return "end";
}

/// Continues line by line and prints.
class LineContinuer : public LineFamily<ContinuedLine> {
 public:
  LineContinuer(const InferRequest& request, const decoding::GenerationOptions& options,
                const GenerationRun& run)
      : request_(request),
        asked_(request.own.as<GenerationArguments>()),
        options_(options),
        tokenizer_(*run.tokenizer),
        max_length_(run.model.max_length),
        generator_(run.model, *run.tokenizer, options) {}

  CostBatchOptions batches() const { return generator_.batches(); }

  void prepare(ContinuedLine& line) const override {
    if (line.input.text.empty() && asked_.prompts.empty()) return;
    line.request.prompt = generator_.prompt_of(line.input.text);
    line.request.line = line.number;
    line.num_tokens = std::ssize(line.request.prompt);
    if (line.num_tokens == 0) return refuse_empty();
    if (generator_.room(line.request) > 0) return;
    line.input.problem = counted(line.num_tokens, "token") + ", and the model has positions for " +
                         std::to_string(max_length_);
    line.request.prompt.clear();
    if (asked_.prompts.empty()) return;
    throw Error(ExitCode::kUsage, "--prompt: " + line.input.problem, "give a shorter text");
  }

  /// Tells once of empty lines.
  void arrange(std::span<ContinuedLine> window) override {
    const auto line = std::ranges::find_if(window, [](const ContinuedLine& one) {
      return one.input.problem.empty() && one.request.prompt.empty();
    });
    if (has_told_of_empty_ || line == window.end()) return;
    has_told_of_empty_ = true;
    log::warn(line->input.place + ": an empty line is not continued, here and below" +
              (generator_.begins_texts() ? "; `--prompt \"\"` begins a text" : ""));
  }

  int64_t cost(const ContinuedLine& line) const override {
    return line.request.prompt.empty() ? 0 : generator_.cost(line.request);
  }

  void run(std::span<ContinuedLine* const> lines,
           const std::function<void()>& beat) const override {
    std::vector<const GenerationRequest*> requests;
    for (const ContinuedLine* line : lines) requests.push_back(&line->request);
    TextListener listener;
    if (asked_.stream) {  // a line at a time: nobody else prints
      print(begin_of(*lines.front()));
      listener = [&](size_t /*request*/, const std::string& text) { print(shown(text)); };
    }
    auto found = generator_.run(requests, listener, beat);
    for (size_t i = 0; i < lines.size(); ++i) lines[i]->found = std::move(found[i]);
  }

  bool is_finite(const ContinuedLine& line) const override {
    if (line.found.empty()) return options_.no_repeat_ngram > 0;
    return std::ranges::all_of(line.found, [](const Continuation& one) {
      return std::isfinite(one.score) && std::isfinite(one.log_prob) &&
             std::ranges::all_of(one.token_log_probs, [](float x) { return std::isfinite(x); });
    });
  }

  void write(std::span<const ContinuedLine> lines) override {
    for (const ContinuedLine& line : lines) {
      for (const Continuation& one : line.found) {
        new_tokens_ += std::ssize(one.ids);
        ++num_continuations_;
        num_unstopped_ += one.end == decoding::OutputEnd::kBound ? 1 : 0;
      }
      if (asked_.stream) {
        std::cout << "\n";  // behind what was printed already
      } else {
        std::cout << (request_.json ? json_of(line) : text_of(line));
      }
    }
  }

  void finish() override {
    if (options_.stop.empty() || num_unstopped_ == 0) return;
    log::warn(with_thousands(num_unstopped_) + " of " +
              counted(num_continuations_, "continuation") +
              " came to decode.max_new_tokens, or to the model's last position, before a string "
              "of decode.stop");
  }

  std::string counts() const override {
    const int64_t bytes = generator_.most_cache_bytes();
    return counted(new_tokens_, "new token") + first_token_words() +
           (bytes == 0
                ? ""
                : ", keys and values of a batch " + human_bytes(static_cast<uint64_t>(bytes)));
  }

 private:
  std::string first_token_words() const {
    const auto first = generator_.first_token();
    if (!first) return "";
    const std::chrono::duration<double> waited = *first - start_;
    return ", the first after " + fixed(waited.count(), 2) + " s";
  }
  /// For a prompt of the command line; a line of that kind counts as empty.
  void refuse_empty() const {
    if (asked_.prompts.empty()) return;
    throw Error(ExitCode::kUsage,
                "--prompt: an empty text, and this model has no token in front of a text "
                "(decode.text_begin = \"tokenizer\")",
                "give a text, or decode.text_begin=separator, which begins one as if another had "
                "ended");
  }
  /// Whether there is one text, which may have lines.
  bool is_one_text() const { return asked_.prompts.size() == 1 && options_.nbest == 1; }
  std::string shown(std::string_view text) const {
    return is_one_text() ? text_on_stdout(text) : line_on_stdout(text);
  }
  std::string begin_of(const ContinuedLine& line) const {
    return asked_.echo ? shown(line.input.text) : std::string();
  }

  static void print(const std::string& text) {
    std::cout << text;
    flush_stdout();
  }

  // `decode.nbest` lines for each line of input, empty ones where there are no more.
  std::string text_of(const ContinuedLine& line) const {
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(options_.nbest); ++i) {
      if (i < line.found.size()) text += begin_of(line) + shown(line.found[i].text);
      text += "\n";
    }
    return text;
  }

  std::string json_of(const ContinuedLine& line) const {
    nlohmann::ordered_json json{{"prompt", line.input.text}};
    if (!line.input.problem.empty()) json["problem"] = line.input.problem;
    auto list = nlohmann::ordered_json::array();
    for (const Continuation& one : line.found) {
      nlohmann::ordered_json entry{{"text", one.text},
                                   {"end", name_of_end(one.end)},
                                   {"score", one.score},
                                   {"log_prob", one.log_prob},
                                   {"token_log_probs", one.token_log_probs}};
      auto names = nlohmann::ordered_json::array();
      for (const int64_t id : one.ids) names.push_back(tokenizer_.piece(id));
      entry["pieces"] = std::move(names);
      list.push_back(std::move(entry));
    }
    json["continuations"] = std::move(list);
    return json_line(json);
  }

  const InferRequest& request_;
  const GenerationArguments& asked_;
  const decoding::GenerationOptions& options_;
  const text::Tokenizer& tokenizer_;
  const int64_t max_length_;
  const Generator generator_;
  const Generator::Time start_ = Generator::Time::clock::now();
  bool has_told_of_empty_ = false;
  int64_t new_tokens_ = 0, num_continuations_ = 0, num_unstopped_ = 0;
};

[[noreturn]] void refuse(const std::string& what, const std::string& advice) {
  throw Error(ExitCode::kUsage, "stretto infer: " + what, advice);
}

void check_arguments(const InferRequest& request, const decoding::GenerationOptions& options) {
  const auto& asked = request.own.as<GenerationArguments>();
  if (!asked.prompts.empty() && !request.files.empty()) {
    refuse("--prompt stands in the place of files", "leave " + request.files.front() + " out");
  }
  if (options.method == "beam" && options.nbest > options.beam_size) {
    refuse("decode.nbest = " + std::to_string(options.nbest) + " of a beam of " +
               std::to_string(options.beam_size),
           "set decode.beam_size=" + std::to_string(options.nbest) + ", or decode.method=sample");
  }
  if (!std::ranges::all_of(asked.prompts, is_valid_utf8)) {
    refuse("a text of --prompt is not UTF-8", "`iconv -t UTF-8` converts it");
  }
  if (!asked.stream) return;
  if (request.json) refuse("--stream prints text, and --json whole answers", "leave one out");
  if (options.lanes() > 1) {
    refuse("--stream prints one continuation, and there are " + std::to_string(options.lanes()),
           options.method == "beam" ? "set decode.beam_size=1" : "leave --samples out");
  }
}

}  // namespace

int continue_lines(const InferRequest& request, const decoding::GenerationOptions& options,
                   const std::function<GenerationRun()>& load) {
  check_arguments(request, options);
  const auto& asked = request.own.as<GenerationArguments>();
  std::optional<data::TextInput> input;  // a missing file is told before models load
  if (asked.prompts.empty()) input.emplace(request.files);
  const GenerationRun run = load();
  // Rows of libtorch's products may depend on the rows beside them; those of ours do not.
  const kernels::gemm::OwnProducts own_products;
  LineContinuer continuer(request, options, run);
  constexpr int64_t kLinesOfThread = 256, kMostLines = 4096;
  const int64_t lines = std::min(kLinesOfThread * at::get_num_threads(), kMostLines);
  LineWork<ContinuedLine> work(
      continuer, {.files = request.files,
                  .run = request.run_directory,
                  .device = run.device,
                  .max_lines = asked.stream ? size_t{1} : static_cast<size_t>(lines),
                  .max_bytes = size_t{1} << 20,
                  .batches = continuer.batches(),
                  .words = {.answer = "what continues this line", .problem = "it is not continued"},
                  .stats = request.stats});
  if (input) {
    TextSource<ContinuedLine> source(*input);
    work.run(source);
  } else {
    PromptSource source(asked.prompts);
    work.run(source);
  }
  work.finish();
  return 0;
}

}  // namespace stretto::tasks
