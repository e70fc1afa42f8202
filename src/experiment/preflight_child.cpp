#include "experiment/preflight_child.h"

#include <string>
#include <utility>

#include "base/in_child.h"

namespace stretto::experiment {
namespace {

// A child that watches the time itself needs some to say how far it came.
constexpr std::chrono::milliseconds kGrace{100};

// What a child found, as text: parts, each behind its number of bytes.
std::string packed(const Preflight& found) {
  std::string text;
  const auto add = [&](const std::string& part) {
    text += std::to_string(part.size()) + ":" + part;
  };
  for (const auto& stop : found.stops) {
    add("stop");
    add(std::to_string(static_cast<int>(stop.stage)));
    add(std::to_string(static_cast<int>(stop.code)));
    for (const auto& part : {stop.key, stop.what, stop.hint}) add(part);
    add(std::to_string(stop.details.size()));
    for (const auto& line : stop.details) add(line);
  }
  for (const auto& unread : found.unread) {
    add("unread");
    for (const auto& part : {unread.key, unread.what}) add(part);
  }
  for (const auto& doubt : found.doubts) {
    add("doubt");
    for (const auto& part : {doubt.key, doubt.what, doubt.hint}) add(part);
  }
  if (found.most_batches > 0) {
    add("most_batches");
    add(std::to_string(found.most_batches));
  }
  return text;
}

/// The parts of packed(), one after the other.
class PackedParts {
 public:
  explicit PackedParts(const std::string& text) : text_(text) {}

  bool more() const { return next_ < text_.size(); }
  std::string take() {
    const size_t begin = text_.find(':', next_) + 1;
    const size_t bytes = std::stoull(text_.substr(next_, begin - next_));
    next_ = begin + bytes;
    return text_.substr(begin, bytes);
  }
  int64_t number() { return std::stoll(take()); }

 private:
  const std::string& text_;
  size_t next_ = 0;
};

Stop taken_stop(PackedParts& parts) {
  Stop stop;
  stop.stage = static_cast<Stage>(parts.number());
  stop.code = static_cast<ExitCode>(parts.number());
  for (auto* part : {&stop.key, &stop.what, &stop.hint}) *part = parts.take();
  for (int64_t lines = parts.number(); lines > 0; --lines) stop.details.push_back(parts.take());
  return stop;
}

Doubt taken_doubt(PackedParts& parts) {
  Doubt doubt;
  for (auto* part : {&doubt.key, &doubt.what, &doubt.hint}) *part = parts.take();
  return doubt;
}

void unpack(const std::string& text, Preflight& found) {
  for (PackedParts parts(text); parts.more();) {
    const std::string kind = parts.take();
    if (kind == "stop") {
      found.stops.push_back(taken_stop(parts));
    } else if (kind == "doubt") {
      found.doubts.push_back(taken_doubt(parts));
    } else if (kind == "unread") {
      std::string key = parts.take();
      found.unread.push_back({std::move(key), parts.take()});
    } else {
      found.most_batches = parts.number();
    }
  }
}

}  // namespace

bool look_in_child(std::chrono::milliseconds limit, const std::function<void(Preflight&)>& look,
                   Preflight& found) {
  if (limit.count() <= 0) return false;
  const auto result = run_in_child(limit + kGrace, [&look] {
    Preflight own;
    look(own);
    return packed(own);
  });
  if (result) unpack(*result, found);
  return result.has_value();
}

}  // namespace stretto::experiment
