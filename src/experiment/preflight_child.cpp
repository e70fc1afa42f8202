#include "experiment/preflight_child.h"

#include <string>

#include "base/in_child.h"
#include "base/text.h"

namespace stretto::experiment {
namespace {

// A child that watches the time itself needs some to say how far it came.
constexpr std::chrono::milliseconds kGrace{100};

// What a child found, as text: no message has a NUL character.
std::string packed(const Preflight& found) {
  std::string text;
  const auto add = [&](const std::string& part) {
    text += part;
    text += '\0';
  };
  for (const auto& stop : found.stops) {
    add("stop");
    add(std::to_string(static_cast<int>(stop.stage)));
    add(std::to_string(static_cast<int>(stop.code)));
    for (const auto& part : {stop.key, stop.what, stop.hint}) add(part);
  }
  for (const auto& unread : found.unread) {
    add("unread");
    for (const auto& part : {unread.key, unread.what}) add(part);
  }
  return text;
}

void unpack(const std::string& text, Preflight& found) {
  const auto parts = split(text, '\0');
  for (size_t i = 0; i + 2 < parts.size();) {
    if (parts[i] == "stop") {
      found.stops.push_back({static_cast<Stage>(std::stoi(parts[i + 1])), parts[i + 3],
                             static_cast<ExitCode>(std::stoi(parts[i + 2])), parts[i + 4],
                             parts[i + 5]});
      i += 6;
    } else {
      found.unread.push_back({parts[i + 1], parts[i + 2]});
      i += 3;
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
