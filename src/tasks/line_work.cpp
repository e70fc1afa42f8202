#include "tasks/line_work.h"

#include <ATen/Parallel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "report/terminal.h"
#include "tasks/finite_answers.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kLinesOfThread = 16;  // that a thread prepares at a time
// Warnings about lines that are shown; the others are counted.
constexpr int64_t kWarningsShown = 10;

bool is_file(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

// A file that is damaged is told of where it is read, behind the answers to the lines before.
int64_t expected_lines(const LineWorkOptions& options) {
  if (options.files_are_lines) return std::ssize(options.files);
  try {
    return data::TextInput::count_lines(options.files).value_or(-1);
  } catch (const Error&) {
    return -1;
  }
}

LineSession::LineSession(LineWorkOptions options)
    : options_(std::move(options)),
      passes_(options_.device),
      may_prompt_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
  const bool named = data::TextInput::are_files(options_.files);
  const bool from_file = named || (options_.files.empty() && is_file(STDIN_FILENO));
  const auto kind = report::line_progress_kind(from_file, options_.stats);
  const bool counts = named && kind != report::LineProgress::Kind::kNone;
  progress_.emplace(kind, counts ? expected_lines(options_) : -1);
}

void LineSession::for_each_line(int64_t count, const std::function<void(int64_t)>& job) const {
  const int64_t together = options_.files_are_lines ? 1 : kLinesOfThread;
  at::parallel_for(0, count, together, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) job(begin);
  });
}

void LineSession::prompt(const std::function<bool()>& waits_for_a_person) {
  if (!may_prompt_ || !waits_for_a_person()) return;
  if (!has_prompted_) log::info("type a line and press Enter; Ctrl-D ends");
  has_prompted_ = true;
  report::write_stderr("> ");
}

void LineSession::tell_of(const WorkLine& line) {
  num_tokens_ += line.num_tokens;
  cut_tokens_ += line.cut_tokens;
  cut_lines_ += line.cut_tokens > 0 ? 1 : 0;
  const bool is_bad = !line.input.problem.empty();
  if (!is_bad && line.note.empty()) return;
  if (++num_warnings_ > kWarningsShown) return;
  log::warn(line.input.place + ": " +
            (is_bad ? line.input.problem + "; " + options_.words.problem : line.note));
}

void LineSession::run_batches(
    std::span<const int64_t> costs,
    const std::function<void(std::span<const size_t>, const std::function<void()>&)>& run) {
  const int64_t threads = options_.device.is_cpu() ? at::get_num_threads() : 1;
  const auto batches = cost_batches(costs, options_.batches, threads);
  int64_t done = num_lines_;
  const auto beat = [&] { passes_.exclusively([&] { progress_->update(done); }); };
  passes_.run(std::ssize(batches), [&](int64_t i) {
    const auto& batch = batches[static_cast<size_t>(i)];
    run(batch, beat);
    passes_.exclusively([&] { done += std::ssize(batch); });
  });
  num_batches_ += std::ssize(batches);
}

void LineSession::refuse(const WorkLine& line) const {
  refuse_not_finite(line.input.place, options_.words.answer, options_.run);
}

void LineSession::end_window(int64_t num_lines) {
  flush_stdout();
  num_lines_ += num_lines;
  progress_->update(num_lines_);
}

void LineSession::finish(const std::string& counts) {
  progress_.reset();
  if (has_prompted_) report::write_stderr("\n");
  if (num_warnings_ > kWarningsShown) {
    log::warn(with_thousands(num_warnings_) + " lines in all could not be read as they are");
  }
  tell_of_cuts();
  if (!options_.stats) return;
  log::info(counted(num_lines_, "line") + " in " + counted(num_batches_, "batch") +
            (counts.empty() ? "" : ", " + counts) + ", " + fixed(seconds_since(start_), 2) + " s");
}

// What texts lost in all: of many lines only the first are warned of one by one.
void LineSession::tell_of_cuts() const {
  if (cut_lines_ == 0) return;
  const double share = static_cast<double>(cut_tokens_) / static_cast<double>(num_tokens_);
  log::warn(counted(cut_lines_, "line") + (cut_lines_ == 1 ? " was" : " were") + " cut to " +
            options_.words.cut_to + ": " + percent_text(share) + " " + options_.words.cut_share);
}

std::string json_line(const nlohmann::ordered_json& json) {
  return shown_on_stdout(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) +
         "\n";
}

}  // namespace stretto::tasks
