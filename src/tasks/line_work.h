#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stdout.h"
#include "data/text_input.h"
#include "parallel/parallel_jobs.h"
#include "report/line_progress.h"
#include "tasks/cost_batches.h"

/// Lines in, answers out: what `stretto infer` and `stretto embed` do for every family.
///
/// Lines are read in windows, and each window is answered before the next one is read. A window
/// ends when it is full, of lines or of bytes, and when the next line has not arrived yet, so that
/// whoever waits for an answer gets it. A window's lines are prepared, cut into batches by their
/// cost, run through the model, checked for numbers that are not finite, and answered in their
/// order. Each line of the input has one answer, a line that cannot be read too.
namespace stretto::tasks {

/// One line on its way through a model. A family derives its own from this, with what it makes of
/// the line.
struct WorkLine {
  data::InputLine input = {};  ///< with a problem where the line cannot be answered
  int64_t number = 0;          ///< among all lines of the command, from 0
  int64_t num_tokens = 0;      ///< of its text
  int64_t cut_tokens = 0;      ///< those of them that the model does not see
  std::string note = {};       ///< a warning about a line that is answered all the same
};

/// Where lines come from.
template <class Line>
class LineSource {
 public:
  virtual ~LineSource() = default;
  /// Waits for the next line and fills its `input`. @return false at the end. The lines before an
  /// Error that this throws are answered first.
  virtual bool next(Line& line) = 0;
  /// Whether next() would return without waiting (data/text_input.h).
  virtual bool ready() = 0;
  /// Whether next() would wait for somebody at a terminal.
  virtual bool waits_for_a_person() { return false; }
};

/// The lines of files or of stdin, as they are.
template <class Line>
class TextSource : public LineSource<Line> {
 public:
  explicit TextSource(data::TextInput& input) : input_(input) {}
  bool next(Line& line) override { return input_.next(line.input); }
  bool ready() override { return input_.ready(); }
  bool waits_for_a_person() override { return input_.waits_for_a_person(); }

 private:
  data::TextInput& input_;
};

/// What a family does with its lines.
template <class Line>
class LineFamily {
 public:
  virtual ~LineFamily() = default;

  /// Makes a line ready for the model, or says in `input.problem` why it cannot be answered. Called
  /// from several threads at once, and not for lines that have a problem already.
  virtual void prepare(Line& line) const = 0;
  /// What a line counts against LineWorkOptions::max_bytes: its text, or where the text is the path
  /// of a picture or a sound, the bytes that prepare() makes of that file. Asked of every line when
  /// it was read, before prepare() and from one thread.
  virtual size_t bytes(const Line& line) const { return line.input.text.size(); }
  /// After all lines of a window were prepared: for what is made of several lines together.
  virtual void arrange(std::span<Line> /*window*/) {}
  /// What a line costs, in the unit of CostBatchOptions::max_cost; 0 = the model does not see it.
  virtual int64_t cost(const Line& line) const = 0;
  /// Runs a batch through the model, within one of parallel::ParallelJobs: without gradients, on a
  /// CPU beside batches of other threads.
  /// @param beat  may be called during long work: shows the progress
  virtual void run(std::span<Line* const> batch, const std::function<void()>& beat) const = 0;
  /// Whether all numbers that the answer to a line rests on are finite, those behind a softmax too.
  /// Asked of lines that were run.
  virtual bool is_finite(const Line& line) const = 0;
  /// Writes the answers of neighbouring lines, also of those with a problem, in their order.
  virtual void write(std::span<const Line> lines) = 0;
  /// After the last line.
  virtual void finish() {}
  /// What `--stats` counts beside lines and batches: "12 tokens".
  virtual std::string counts() const { return ""; }
};

/// What is said of lines.
struct LineWords {
  std::string answer;          ///< "the translation of this line"
  std::string problem;         ///< what becomes of a bad line: "its translation is empty"
  std::string cut_to = {};     ///< the bound of a text: "data.max_src_tokens"
  std::string cut_share = {};  ///< behind a share of tokens: "of all tokens were not read"
};

struct LineWorkOptions {
  std::vector<std::string> files = {};  ///< of the command, as TextInput takes them
  /// Whether each of `files` is a line of the input itself, such as a picture or a sound. Then they
  /// are not looked into for lines, and threads prepare one at a time.
  bool files_are_lines = false;
  std::string run;  ///< folder of the model, for messages
  at::Device device = at::kCPU;
  size_t max_lines = 256;  ///< of a window
  /// LineFamily::bytes() of the lines of a window; the line that reaches it is in it.
  size_t max_bytes = size_t{64} << 20;
  CostBatchOptions batches = {};
  LineWords words = {};
  bool stats = false;  ///< at the end lines, batches and time on stderr
};

/// The lines of the input, for its progress; -1 = not known. Reads text files to their end.
int64_t expected_lines(const LineWorkOptions& options);

/// What LineWork does and counts whatever a family's lines are.
class LineSession {
 public:
  explicit LineSession(LineWorkOptions options);

  const LineWorkOptions& options() const { return options_; }
  /// Calls `job` with 0 … count - 1, from all threads.
  void for_each_line(int64_t count, const std::function<void(int64_t)>& job) const;

  /// Before a line is read: a prompt for whoever types at a terminal and reads stderr there.
  void prompt(const std::function<bool()>& waits_for_a_person);
  /// Warns of a line's problem or note. Where there are many, the first are named, and the others
  /// counted.
  void tell_of(const WorkLine& line);
  /// Cuts lines of these costs into batches, and runs these as parallel::ParallelJobs.
  /// @param run  of one batch: the numbers of its lines, and a function that shows the progress
  void run_batches(
      std::span<const int64_t> costs,
      const std::function<void(std::span<const size_t>, const std::function<void()>&)>& run);
  /// Throws Error(kNumeric), which names the line.
  [[noreturn]] void refuse(const WorkLine& line) const;
  /// After a window's answers: flushes stdout. Throws Error(kIo), for instance where the pipe is
  /// closed.
  void end_window(int64_t num_lines);
  /// @param counts  LineFamily::counts()
  void finish(const std::string& counts);

  int64_t num_lines() const { return num_lines_; }  ///< of the windows that have ended

 private:
  void tell_of_cuts() const;

  const LineWorkOptions options_;
  parallel::ParallelJobs passes_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<report::LineProgress> progress_;
  bool may_prompt_ = false, has_prompted_ = false;
  int64_t num_lines_ = 0, num_batches_ = 0, num_warnings_ = 0;
  int64_t num_tokens_ = 0, cut_tokens_ = 0, cut_lines_ = 0;
};

/// Answers all lines of some sources.
template <class Line>
class LineWork {
 public:
  LineWork(LineFamily<Line>& family, LineWorkOptions options)
      : family_(family), session_(std::move(options)) {}

  /// Answers the lines of a source; its last window ends with it. Throws what the source and the
  /// family throw, Error(kNumeric) for numbers that are not finite, and Error(kIo) where stdout
  /// takes no more.
  void run(LineSource<Line>& source) {
    for (bool has_more = true; has_more;) {
      std::vector<Line> window;
      std::exception_ptr failure;
      try {
        has_more = read(source, window);
      } catch (const Error&) {
        failure = std::current_exception();
      }
      if (!window.empty()) answer(window);
      if (failure) std::rethrow_exception(failure);
    }
  }

  /// After the last source.
  void finish() {
    family_.finish();
    session_.finish(family_.counts());
  }

 private:
  /// @return false at the end of the source
  bool read(LineSource<Line>& source, std::vector<Line>& window) {
    const auto& options = session_.options();
    for (size_t bytes = 0;;) {
      session_.prompt([&] { return source.waits_for_a_person(); });
      Line line;
      if (!source.next(line)) return false;
      line.number = session_.num_lines() + std::ssize(window);
      bytes += family_.bytes(line);
      window.push_back(std::move(line));
      if (window.size() >= options.max_lines || bytes >= options.max_bytes) return true;
      if (!source.ready()) return true;
    }
  }

  void answer(std::vector<Line>& window) {
    session_.for_each_line(std::ssize(window), [&](int64_t i) {
      Line& line = window[static_cast<size_t>(i)];
      if (line.input.problem.empty()) family_.prepare(line);
    });
    for (const Line& line : window) session_.tell_of(line);
    family_.arrange(window);
    std::vector<int64_t> costs;
    for (const Line& line : window) {
      costs.push_back(line.input.problem.empty() ? family_.cost(line) : 0);
    }
    session_.run_batches(costs, [&](std::span<const size_t> numbers, const auto& beat) {
      std::vector<Line*> batch;
      for (const size_t number : numbers) batch.push_back(&window[number]);
      family_.run(batch, beat);
    });
    size_t good = 0;
    while (good < window.size() && (costs[good] == 0 || family_.is_finite(window[good]))) ++good;
    if (good > 0) family_.write(std::span<const Line>(window).first(good));
    session_.end_window(static_cast<int64_t>(good));
    if (good < window.size()) session_.refuse(window[good]);
  }

  LineFamily<Line>& family_;
  LineSession session_;
};

/// Answers the lines of files or of stdin, as they are.
template <class Line>
void answer_lines(LineFamily<Line>& family, data::TextInput& input, LineWorkOptions options) {
  TextSource<Line> source(input);
  LineWork<Line> work(family, std::move(options));
  work.run(source);
  work.finish();
}

/// An answer as one line of JSON, with its line end, as it may be printed to stdout. Bytes that are
/// not UTF-8 are replaced.
std::string json_line(const nlohmann::ordered_json& json);

}  // namespace stretto::tasks
