#include "report/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
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

/// The lines that a run which went on from `resume_step` without a break would have written so far.
/// They are kept byte for byte: reading and writing them anew could only lose something. A line
/// that is no event (a machine that lost power can leave zeros) is left out.
std::string cut_back(const std::string& text, int64_t resume_step) {
  std::string kept;
  for_each_whole_line(text, [&](std::string_view line, int64_t) {
    try {
      const MetricsEvent event = parse_event(line);
      if (event.step > resume_step || event.event == "end") return;
    } catch (const std::exception&) {
      return;
    }
    kept.append(line).push_back('\n');
  });
  return kept;
}

/// One write(2) for the whole line, so that a reader of the file never sees two lines mixed.
/// @return 0, or errno.
int write_whole(int fd, std::string_view line) {
  if (const int simulated = failpoint("metrics.write")) return simulated;
  while (true) {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) return 0;
    if (written >= 0) return ENOSPC;  // a short write to a regular file means a full disk
    if (errno != EINTR) return errno;
  }
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

MetricsLog::MetricsLog(const std::filesystem::path& path, std::optional<int64_t> resume_step)
    : path_(path) {
  if (resume_step) {
    const std::string old = read_if_there(path);
    const std::string kept = cut_back(old, *resume_step);
    if (kept != old) write_file_atomic(path, kept);
  }
  fd_ = open_own_file(path, O_WRONLY | O_APPEND).release();
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::write(const MetricsEvent& event) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  const int error = write_whole(fd_, event.to_json() + "\n");
  if (error == 0) return;
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

}  // namespace stretto::report
