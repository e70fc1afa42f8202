#include "config/problem.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace stretto::config {
namespace {

// Is it the key itself, or a section that the key stands in?
bool covers(const std::string& wrong, const std::string& key) {
  if (wrong.empty() || !key.starts_with(wrong)) return false;
  return key.size() == wrong.size() || key[wrong.size()] == '.';
}

}  // namespace

std::string Place::text() const {
  if (!override_text.empty()) return "command line, `" + printable(override_text) + "`";
  return file + ":" + std::to_string(order.line) + ":" + std::to_string(order.column);
}

std::string Note::text() const {
  return place.text() + ": " + what;
}

bool is_unreliable(const std::vector<Problem>& problems, const std::string& key) {
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return covers(problem.key, key) ||
           std::any_of(problem.also.begin(), problem.also.end(),
                       [&](const std::string& other) { return covers(other, key); });
  });
}

bool Origins::given(const std::string& key) const {
  const auto found = places_.find(key);
  return found != places_.end() && found->second.order.source != Order::kTaken;
}

bool Origins::taken(const std::string& key) const {
  return places_.contains(key) && !given(key);
}

bool Origins::overridden(const std::string& key) const {
  const auto found = places_.find(key);
  return found != places_.end() && !found->second.override_text.empty();
}

std::string Origins::of(const std::string& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) return "`" + key + "` (default)";
  if (taken(key)) return "`" + key + "` (from " + printable(found->second.file, 4096) + ")";
  return found->second.text() + ": `" + key + "`";
}

Order Origins::order_of(const std::string& key) const {
  const auto found = places_.find(key);
  return given(key) ? found->second.order : Order{};
}

void Origins::note(Place place, std::string what) {
  const bool is_known = std::any_of(notes_.begin(), notes_.end(),
                                    [&](const Note& note) { return note.what == what; });
  if (!is_known) notes_.push_back({std::move(place), std::move(what)});
}

void Origins::drop_notes_on_files() {
  std::erase_if(notes_, [](const Note& note) { return note.place.override_text.empty(); });
}

std::vector<Problem> in_order(std::vector<Problem> problems) {
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.order < b.order; });
  return problems;
}

std::string problems_text(const std::vector<Problem>& problems) {
  const auto sorted = in_order(problems);
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostProblemsShown); ++i) {
    const auto& problem = sorted[i];
    if (!text.empty()) text += "\nerror: ";
    text += (problem.place.empty() ? "" : problem.place + ": ") + problem.what;
    if (!problem.hint.empty()) text += "\n  " + problem.hint;
  }
  if (sorted.size() > 1) text += "\n" + std::to_string(sorted.size()) + " errors";
  if (sorted.size() > kMostProblemsShown)
    text += ", the first " + std::to_string(kMostProblemsShown) + " are above";
  return text;
}

void throw_problems(const std::vector<Problem>& problems, ExitCode code) {
  if (!problems.empty()) throw Error(code, problems_text(problems));
}

}  // namespace stretto::config
