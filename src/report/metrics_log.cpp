#include "report/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

using Json = nlohmann::json;

// Of some hundred bytes for each event: ten million events.
constexpr size_t kMaxLogBytes = size_t{4} << 30;

/// Builds one JSON object with the keys in the order of the calls.
class ObjectWriter {
 public:
  void add(const char* key, int64_t value) { raw(key, std::to_string(value)); }
  void add(const char* key, bool value) { raw(key, value ? "true" : "false"); }
  void add(const char* key, double value) {
    // Readers take "-0" for the integer 0, which has no sign.
    const bool negative_zero = value == 0 && std::signbit(value);
    raw(key, negative_zero ? "-0.0" : std::isfinite(value) ? shortest(value) : "null");
  }
  void add(const char* key, const std::string& value) {
    // valid_utf8 first: a broken byte in a reason must not cost the run its event.
    raw(key, Json(valid_utf8(value)).dump());
  }
  template <typename T>
  void add(const char* key, const std::optional<T>& value) {
    if (value) add(key, *value);
  }
  std::string take() { return std::move(text_) + "}"; }

 private:
  void raw(const char* key, const std::string& value) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += key;
    text_ += "\":";
    text_ += value;
  }
  std::string text_;
};

/// The whole file, or nothing when there is none yet.
std::string read_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? read_file(path, kMaxLogBytes) : std::string();
}

/// Calls `each(line, number)` for every line that ends with a newline; what follows is a torn line.
template <typename Each>
void for_each_whole_line(std::string_view text, Each&& each) {
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return;
    each(text.substr(begin, end - begin), number);
    begin = end + 1;
  }
}

std::string place(const std::filesystem::path& path, int64_t line) {
  return path.string() + ":" + std::to_string(line);
}

[[noreturn]] void throw_bad_line(const std::filesystem::path& path, int64_t line,
                                 const std::string& why) {
  throw Error(ExitCode::kBadData, place(path, line) + ": not a metrics event: " + why,
              "remove or repair that line; nothing else of the run depends on it");
}

template <typename T>
void get(const Json& object, const char* key, std::optional<T>* value) {
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) *value = found->get<T>();
}

/// An event is flat, so depth is bounded before the parser builds anything.
Json parse_flat(std::string_view line) {
  const auto only_flat = [](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > 0) throw std::invalid_argument("nested values are not expected");
    return true;
  };
  Json object = Json::parse(line, only_flat);
  if (!object.is_object()) throw std::invalid_argument("expected a JSON object");
  return object;
}

MetricsEvent parse_event(std::string_view line) {
  const Json object = parse_flat(line);
  MetricsEvent event;
  event.step = object.at("step").get<int64_t>();
  event.epoch = object.value("epoch", int64_t{0});
  event.event = object.at("event").get<std::string>();
  get(object, "loss", &event.loss);
  get(object, "nll", &event.nll);
  get(object, "ppl", &event.ppl);
  get(object, "lr", &event.lr);
  get(object, "grad_norm", &event.grad_norm);
  get(object, "target_tokens", &event.target_tokens);
  get(object, "source_tokens", &event.source_tokens);
  get(object, "tokens_per_second", &event.tokens_per_second);
  get(object, "loss_scale", &event.loss_scale);
  get(object, "peak_memory_bytes", &event.peak_memory_bytes);
  get(object, "peak_device_memory_bytes", &event.peak_device_memory_bytes);
  get(object, "seconds", &event.seconds);
  get(object, "bleu", &event.bleu);
  get(object, "skipped", &event.skipped);
  get(object, "batch_hash", &event.batch_hash);
  get(object, "weights_hash", &event.weights_hash);
  get(object, "reason", &event.reason);
  get(object, "noise_scale", &event.noise_scale);
  get(object, "comm_seconds", &event.comm_seconds);
  get(object, "comm_wait_seconds", &event.comm_wait_seconds);
  get(object, "processes", &event.processes);
  get(object, "note", &event.note);
  return event;
}

MetricsEvent parse_event(std::string_view line, const std::filesystem::path& path, int64_t number) {
  try {
    return parse_event(line);
  } catch (const std::exception& error) {
    throw_bad_line(path, number, error.what());
  }
}

/// Whether a run that went on from `resume` without a break would have written this event so far.
bool is_known(const MetricsEvent& event, const ResumePoint& resume) {
  if (event.event == "end" || event.step > resume.step) return false;
  return event.event != "valid" || event.step < resume.step || resume.validated;
}

struct CutBack {
  std::string kept;
  std::vector<BrokenLine> broken;  ///< a machine that lost power can leave zeros
};

/// Lines that stay are kept byte for byte: reading and writing them anew could only lose something.
CutBack cut_back(const std::string& text, const ResumePoint& resume) {
  CutBack cut;
  for_each_whole_line(text, [&](std::string_view line, int64_t number) {
    try {
      if (!is_known(parse_event(line), resume)) return;
    } catch (const std::exception& error) {
      cut.broken.push_back({number, error.what()});
      return;
    }
    cut.kept.append(line).push_back('\n');
  });
  return cut;
}

/// "bad-metrics.jsonl" beside the file, or the next such name that is free.
std::filesystem::path name_aside(const std::filesystem::path& path) {
  const std::string stem = "bad-" + path.stem().string(), extension = path.extension().string();
  std::filesystem::path aside = path.parent_path() / (stem + extension);
  for (int i = 2; std::filesystem::exists(std::filesystem::symlink_status(aside)); ++i) {
    aside = path.parent_path() / (stem + "-" + std::to_string(i) + extension);
  }
  return aside;
}

/// One write(2) for the whole line, so that a reader of the file hardly ever sees a part. A signal
/// or a network file system may cut it short: then the rest follows. On a full disk that fails.
/// @return 0, or errno.
int write_whole(int fd, std::string_view line) {
  while (!line.empty()) {
    size_t size = line.size();
    const int simulated = failpoint("metrics.write", size);
    const ssize_t written = simulated != 0 ? -1 : ::write(fd, line.data(), size);
    const int error = simulated != 0 ? simulated : errno;
    if (written > 0) {
      line.remove_prefix(static_cast<size_t>(written));
    } else if (written == 0) {
      return ENOSPC;  // would be tried for ever
    } else if (error != EINTR) {
      return error;
    }
  }
  return 0;
}

}  // namespace

std::string MetricsEvent::to_json() const {
  ObjectWriter out;
  out.add("step", step);
  out.add("epoch", epoch);
  out.add("event", event);
  out.add("loss", loss);
  out.add("nll", nll);
  out.add("ppl", ppl);
  out.add("lr", lr);
  out.add("grad_norm", grad_norm);
  out.add("target_tokens", target_tokens);
  out.add("source_tokens", source_tokens);
  out.add("tokens_per_second", tokens_per_second);
  out.add("loss_scale", loss_scale);
  out.add("peak_memory_bytes", peak_memory_bytes);
  out.add("peak_device_memory_bytes", peak_device_memory_bytes);
  out.add("seconds", seconds);
  out.add("bleu", bleu);
  out.add("skipped", skipped);
  out.add("batch_hash", batch_hash);
  out.add("weights_hash", weights_hash);
  out.add("reason", reason);
  out.add("noise_scale", noise_scale);
  out.add("comm_seconds", comm_seconds);
  out.add("comm_wait_seconds", comm_wait_seconds);
  out.add("processes", processes);
  out.add("note", note);
  return out.take();
}

MetricsLog::MetricsLog(const std::filesystem::path& path, const std::optional<ResumePoint>& resume)
    : path_(path) {
  if (resume) go_on_from(*resume);
  fd_ = open_own_file(path, O_WRONLY | O_APPEND).release();
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::go_on_from(const ResumePoint& resume) {
  const std::string old = read_if_there(path_);
  const CutBack cut = cut_back(old, resume);
  if (!cut.broken.empty()) {
    const auto aside = name_aside(path_);
    write_file_atomic(aside, old);
    warn_of_broken_lines(path_, cut.broken);
    log::warn("the file as it was is kept as " + aside.filename().string() + "; training goes on");
  }
  if (cut.kept != old) write_file_atomic(path_, cut.kept);
  count(cut.kept);
  if (!resume.mark || (resume.mark->bytes == bytes_ && resume.mark->hash == hash_.digest())) return;
  log::warn(path_.string() + " is not what it was when the checkpoint of step " +
            with_thousands(resume.step) + " was written (" +
            with_thousands(static_cast<int64_t>(resume.mark->bytes)) + " bytes then, " +
            with_thousands(static_cast<int64_t>(bytes_)) +
            " now): it was damaged or edited; training goes on, curves may be wrong");
}

void MetricsLog::count(std::string_view bytes) {
  hash_.update(bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

void MetricsLog::write(const MetricsEvent& event) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  const std::string line = event.to_json() + "\n";
  const int error = write_whole(fd_, line);
  if (error == 0) return count(line);
  // A part of the line must not be glued to the next event, should the disk have room again.
  if (before >= 0 && ::ftruncate(fd_, before) != 0) {
    // Nothing more can be done here; readers leave a torn last line out.
  }
  throw_io_error("cannot write to", path_, error);
}

std::vector<MetricsEvent> read_metrics(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMaxLogBytes);
  std::vector<MetricsEvent> events;
  for_each_whole_line(text, [&](std::string_view line, int64_t number) {
    events.push_back(parse_event(line, path, number));
  });
  return events;
}

std::vector<MetricsEvent> read_metrics(const std::filesystem::path& path,
                                       std::vector<BrokenLine>& broken) {
  const std::string text = read_file(path, kMaxLogBytes);
  std::vector<MetricsEvent> events;
  for_each_whole_line(text, [&](std::string_view line, int64_t number) {
    try {
      events.push_back(parse_event(line));
    } catch (const std::exception& error) {
      broken.push_back({number, error.what()});
    }
  });
  return events;
}

void warn_of_broken_lines(const std::filesystem::path& path,
                          const std::vector<BrokenLine>& broken) {
  constexpr size_t kNamed = 5;
  for (size_t i = 0; i < std::min(kNamed, broken.size()); ++i) {
    log::warn(place(path, broken[i].number) +
              ": left out, since it is no metrics event: " + printable(broken[i].why));
  }
  if (broken.size() > kNamed) {
    log::warn(path.string() + ": " + with_thousands(static_cast<int64_t>(broken.size() - kNamed)) +
              " more lines are no metrics events and left out");
  }
}

}  // namespace stretto::report
