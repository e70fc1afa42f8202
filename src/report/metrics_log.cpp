#include "report/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

using Json = nlohmann::ordered_json;  // a line's numbers have an order

// Room for ten million events of some hundred bytes each.
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
  void add(const char*, const NamedNumbers& numbers) {
    for (const auto& one : numbers) {
      std::visit([&](auto value) { add(one.name.c_str(), value); }, one.value);
    }
  }
  std::string take() { return std::move(text_) + "}"; }

 private:
  void raw(const char* key, const std::string& value) {
    text_ += text_.empty() ? "{" : ",";
    text_ += Json(valid_utf8(key)).dump();
    text_ += ":";
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

/// Every key of the loop's own in the order of the file, and where the task's numbers stand among
/// them.
template <class Event, class Visit>
void for_keys(Event& event, const Visit& visit) {
  visit("step", event.step);
  visit("epoch", event.epoch);
  visit("event", event.event);
  visit("loss", event.loss);
  visit(nullptr, event.measures);
  visit("lr", event.lr);
  visit("grad_norm", event.grad_norm);
  visit(nullptr, event.counts);
  visit("loss_scale", event.loss_scale);
  visit("peak_memory_bytes", event.peak_memory_bytes);
  visit("peak_device_memory_bytes", event.peak_device_memory_bytes);
  visit("seconds", event.seconds);
  visit(nullptr, event.scores);
  visit("skipped", event.skipped);
  visit("batch_hash", event.batch_hash);
  visit("weights_hash", event.weights_hash);
  visit("reason", event.reason);
  visit("data_wait_seconds", event.data_wait_seconds);
  visit("noise_scale", event.noise_scale);
  visit("sparsity", event.sparsity);
  visit("comm_seconds", event.comm_seconds);
  visit("comm_wait_seconds", event.comm_wait_seconds);
  visit("processes", event.processes);
  visit("note", event.note);
  visit("unscheduled", event.unscheduled);
}

/// Where a task's number stands that follows a key of the loop's own: the number of
/// `MetricsEvent`'s lists before it.
const std::map<std::string, size_t>& places_behind() {
  static const auto places = [] {
    std::map<std::string, size_t> behind;
    size_t lists = 0;
    const MetricsEvent event{};
    for_keys(event, [&](const char* key, const auto&) {
      if (key == nullptr) {
        ++lists;
      } else {
        behind.emplace(key, lists);
      }
    });
    return behind;
  }();
  return places;
}

/// Fills what the loop itself writes, but for the three keys that each line has.
struct KeyReader {
  const Json& object;

  template <typename T>
  void operator()(const char* key, std::optional<T>& value) const {
    const auto found = object.find(key);
    if (found != object.end() && !found->is_null()) value = found->template get<T>();
  }
  template <typename T>
  void operator()(const char*, T&) const {}
};

void read_task_numbers(const Json& object, MetricsEvent& event) {
  const auto& places = places_behind();
  NamedNumbers* const lists[] = {&event.measures, &event.counts, &event.scores};
  size_t list = 0;
  for (const auto& [key, value] : object.items()) {
    if (const auto own = places.find(key); own != places.end()) {
      list = std::min(own->second, std::size(lists) - 1);
    } else if (value.is_number_integer() && lists[list] != &event.scores) {
      // A measure that happens to be whole is still found by its name.
      event.counts.push_back({key, value.get<int64_t>()});
    } else if (value.is_number()) {
      lists[list]->push_back({key, value.get<double>()});
    }
  }
}

/// An event is flat, so the depth is checked before the parser builds anything.
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
  for_keys(event, KeyReader{object});
  read_task_numbers(object, event);
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
  if (event.event == "data") return event.step < resume.step;  // the resume says it again
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

double NamedNumber::as_double() const {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

std::optional<double> MetricsEvent::number(std::string_view name) const {
  if (name == "loss") return loss;
  for (const auto* list : {&measures, &scores, &counts}) {
    const auto found = std::ranges::find(*list, name, &NamedNumber::name);
    if (found != list->end()) return found->as_double();
  }
  return std::nullopt;
}

std::string MetricsEvent::to_json() const {
  ObjectWriter out;
  for_keys(*this, [&](const char* key, const auto& value) { out.add(key, value); });
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

std::vector<MetricsEvent> metrics_of_run(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / "metrics.jsonl";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  std::vector<BrokenLine> broken;
  return read_metrics(path, broken);
}

void warn_of_broken_lines(const std::filesystem::path& path,
                          const std::vector<BrokenLine>& broken) {
  constexpr size_t kNamed = 5;
  for (size_t i = 0; i < std::min(kNamed, broken.size()); ++i) {
    log::warn(place(path, broken[i].number) +
              ": left out, since it is no metrics event: " + printable(broken[i].why));
  }
  if (broken.size() > kNamed) {
    const auto more = static_cast<int64_t>(broken.size() - kNamed);
    log::warn(path.string() + ": " + counted(more, "more line is", "more lines are") +
              " left out for the same reason");
  }
}

}  // namespace stretto::report
