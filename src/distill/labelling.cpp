#include "distill/labelling.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/told_error.h"

namespace stretto::distill {
namespace {

namespace fs = std::filesystem;

constexpr int kStopped = static_cast<int>(ExitCode::kInterrupted);
constexpr size_t kMostLogBytes = size_t{64} << 20;

FileLock lock_labels(const fs::path& folder) {
  make_directories(folder);
  return FileLock::try_now(folder / ".lock", "stretto distill");
}

fs::path text_file(const fs::path& folder, size_t text, const char* ending) {
  return folder / ("text_" + std::to_string(text) + ending);
}

experiment::LabelledText labelled_text(const fs::path& folder, size_t text) {
  return {.text = text_file(folder, text, ".src").string(),
          .labels = text_file(folder, text, ".labels").string()};
}

std::string hash_of(const fs::path& path) {
  return hex64(xxh3_64(MappedFile(path).bytes()));
}

// The last error that a process told of, else what it said last; for people.
std::string complaint_of_teacher(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  const std::string output = read_file(path, kMostLogBytes);
  if (const auto error = last_told_error(output); !error.empty()) return printable(error);
  std::string last;
  for (auto& line : split(output, '\n')) {
    if (!trim(line).empty()) last = std::move(line);
  }
  return printable(last);
}

// Whether a part of a text has its labels.
bool is_begun(const LabelsRecord& record, const fs::path& folder) {
  return !record.bytes.empty() || std::ranges::any_of(record.cut.parts, [&](const Part& part) {
    std::error_code ignored;
    return fs::exists(labels_of(part, folder), ignored);
  });
}

// How far the labelling is, and how long the rest takes at this pace.
class Pace {
 public:
  Pace(int64_t done, int64_t all) : done_(done), all_(all) {}

  void add(int64_t lines) {
    done_ += lines;
    here_ += lines;
    const double rate = double(here_) / std::max(1e-3, seconds_since(began_));
    std::string text = "labelled " + with_thousands(done_) + " of " + counted(all_, "line") + ", " +
                       fixed(rate, rate < 10 ? 1 : 0) + " lines/s";
    if (done_ < all_) text += ", " + human_duration(double(all_ - done_) / rate) + " left";
    log::info(text);
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int64_t done_, all_, here_ = 0;
};

}  // namespace

struct Labelling::Worker {
  Part part;
  ChildProcess process;
};

Labelling::Labelling(LabellingSetup setup)
    : setup_(std::move(setup)), lock_(lock_labels(setup_.folder)) {
  const auto earlier = read_labels_record(setup_.folder);
  if (!earlier) return;
  if (earlier->fingerprint != setup_.fingerprint) {
    if (!is_begun(*earlier, setup_.folder)) {
      take_over(*earlier);
      return;
    }
    throw Error(
        ExitCode::kUsage,
        setup_.folder.string() + " has labels of another teacher, of other keys or of other texts",
        "remove the folder, or give another one with --labels");
  }
  record_ = *earlier;
}

bool Labelling::adopt_finished() {
  if (record_.bytes.empty()) return false;
  for (size_t i = 0; i < setup_.texts.size(); ++i) {
    const auto files = labelled_text(setup_.folder, i);
    require_intact(files.text, 2 * i);
    require_intact(files.labels, 2 * i + 1);
  }
  adopt();
  return true;
}

// Reads a file at the speed of the disk, which is little beside the training on it that follows.
void Labelling::require_intact(const fs::path& path, size_t number) const {
  std::error_code error;
  const bool has_size = fs::file_size(path, error) == record_.bytes.at(number) && !error;
  const bool is_hashed = number < record_.hashes.size();
  if (has_size && (!is_hashed || hash_of(path) == record_.hashes[number])) return;
  const std::string how = has_size ? ", though its size is the same" : "";
  throw Error(ExitCode::kBadData, path.string() + ": is not what the teacher wrote" + how,
              "put the file back from a copy, or remove " + setup_.folder.string() +
                  " to label the texts again");
}

void Labelling::adopt() {
  labels_ = {};
  for (size_t i = 0; i < setup_.texts.size(); ++i) {
    labels_.texts.push_back(labelled_text(setup_.folder, i));
  }
  labels_.lines = record_.lines;
  labels_.left_out = record_.cut.left_out + record_.without_label;
}

// A folder whose teacher has labelled nothing, since its keys were wrong, say.
void Labelling::take_over(const LabelsRecord& other) {
  for (const Part& part : other.cut.parts) fs::remove_all(text_file(setup_.folder, part.text, ""));
  write_fingerprint();
}

void Labelling::write_fingerprint() {
  record_.fingerprint = setup_.fingerprint;
  write_file_atomic(labels_record_path(setup_.folder),
                    labels_record_text(record_, setup_.texts.size()));
}

// From here on all that is in the folder is known to be of these labels.
void Labelling::begin() {
  for (size_t i = 0; i < setup_.texts.size(); ++i) {
    for (const char* ending : {"", ".src", ".labels"}) {
      const fs::path path = text_file(setup_.folder, i, ending);
      if (!fs::exists(fs::symlink_status(path))) continue;
      throw Error(ExitCode::kUsage,
                  path.string() + " is there, and no labels.json says of which teacher it is",
                  "remove it, or give another folder with --labels");
    }
  }
  write_fingerprint();
}

// Parts whose labels are joined only take room.
void Labelling::remove_parts() const {
  for (size_t i = 0; i < setup_.texts.size(); ++i) {
    std::error_code ignored;
    fs::remove_all(text_file(setup_.folder, i, ""), ignored);
  }
}

void Labelling::cut() {
  if (!record_.cut.parts.empty()) return;  // of an earlier start
  if (record_.fingerprint.empty()) begin();
  record_.cut = cut_texts(setup_.texts, setup_.folder, setup_.part_lines);
  write_file_atomic(labels_record_path(setup_.folder),
                    labels_record_text(record_, setup_.texts.size()));
}

std::vector<Part> Labelling::open_parts() const {
  std::vector<Part> open;
  for (const Part& part : record_.cut.parts) {
    std::error_code ignored;
    if (!fs::exists(labels_of(part, setup_.folder), ignored)) open.push_back(part);
  }
  return open;
}

fs::path Labelling::answer_of(const Part& part) const {
  return labels_of(part, setup_.folder).replace_extension(".open");
}

void Labelling::start(const Part& part, std::vector<Worker>& workers) const {
  fs::remove(answer_of(part));  // half of it may be there
  ChildProcess process(setup_.command(source_of(part, setup_.folder)),
                       ChildProcess::OutputFile{.path = answer_of(part), .errors = log_path()});
  workers.push_back({.part = part, .process = std::move(process)});
}

// The labels of a part, once its process has ended well.
void Labelling::take(const Part& part) const {
  int64_t lines = 0;
  {
    const MappedFile answers(answer_of(part));
    const auto bytes = answers.bytes();
    lines = std::count(bytes.begin(), bytes.end(), '\n');
  }
  if (lines != part.lines) {
    throw Error(ExitCode::kBadData,
                "the teacher gave " + counted(lines, "label") + " for the " +
                    counted(part.lines, "line") + " of " + source_of(part, setup_.folder).string(),
                "its command has to print one line for each line; " + log_path().string() +
                    " has what else it said");
  }
  rename_path(answer_of(part), labels_of(part, setup_.folder));
}

int Labelling::label(const std::vector<Part>& open) {
  const StopSignals signals;
  int64_t open_lines = 0;
  for (const Part& part : open) open_lines += part.lines;
  Pace pace(record_.cut.lines - open_lines, record_.cut.lines);
  std::vector<Worker> workers;
  size_t next = 0;
  int failed = 0;
  bool asked_to_stop = false;
  for (;;) {
    const bool may_start = failed == 0 && !signals.requested();
    while (may_start && next < open.size() && std::ssize(workers) < setup_.processes) {
      start(open[next++], workers);
    }
    if (signals.requested() && !std::exchange(asked_to_stop, true)) {
      for (const Worker& worker : workers) worker.process.send(ChildProcess::kEnd);
    }
    for (size_t i = 0; i < workers.size();) {
      const auto code = workers[i].process.poll();
      if (!code) {
        ++i;
        continue;
      }
      const Part part = workers[i].part;
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
      if (*code == 0) {
        take(part);
        pace.add(part.lines);
      } else if (failed == 0 && !asked_to_stop) {
        failed = *code;
      }
    }
    if (workers.empty() && (failed != 0 || asked_to_stop || next == open.size())) break;
    std::this_thread::sleep_for(setup_.tick);
  }
  if (asked_to_stop) return kStopped;
  if (failed != 0) {
    const auto said = complaint_of_teacher(log_path());
    log::error("a teacher's process failed with exit code " + std::to_string(failed) +
               (said.empty() ? "" : ": " + said) + "\n  " + log_path().string() +
               " has all that it said; the same command tries it again");
  }
  return failed;
}

void Labelling::join() {
  for (size_t i = 0; i < setup_.texts.size(); ++i) {
    const auto joined = join_parts(record_.cut.parts, i, setup_.folder);
    record_.lines += joined.lines;
    record_.without_label += joined.without_label;
    for (const fs::path path : {joined.files.text, joined.files.labels}) {
      record_.bytes.push_back(fs::file_size(path));
      record_.hashes.push_back(hash_of(path));
    }
  }
  if (record_.lines == 0) {
    throw Error(ExitCode::kBadData, "the teacher's labels are empty, all of them",
                "look at what `stretto infer` of the teacher gives for a line of the text");
  }
  write_file_atomic(labels_record_path(setup_.folder),
                    labels_record_text(record_, setup_.texts.size()));
}

int Labelling::run() {
  if (adopt_finished()) {
    remove_parts();  // of a process that was killed before it did
    return 0;
  }
  cut();
  if (const auto open = open_parts(); !open.empty()) {
    if (const int code = label(open); code != 0) return code;
  }
  join();
  remove_parts();
  adopt();
  return 0;
}

}  // namespace stretto::distill
