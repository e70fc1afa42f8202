#pragma once

#include <compare>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::config {

/// Where something stands among all that was read: files in the order in which they were opened,
/// then the command line, then what was not given at all.
struct Order {
  static constexpr int kTaken = -1;  ///< of values that were taken from elsewhere (config/load.h)
  static constexpr int kCommandLine = 1'000'000;  ///< above the number of any file
  static constexpr int kNotGiven = std::numeric_limits<int>::max();

  int source = kNotGiven;  ///< number of the file, or kCommandLine + number of the override
  int line = 0, column = 0;

  auto operator<=>(const Order&) const = default;
};

/// Where a value was given.
struct Place {
  std::string file;  ///< empty for the command line
  Order order;
  std::string override_text;  ///< "optim.lr=1" when it came from the command line

  std::string text() const;  ///< "my.toml:14:1" or "command line, `optim.lr=1`"
};

/// One thing that is wrong with a configuration.
struct Problem {
  std::string place;
  std::string what;
  std::string hint;  ///< may be empty
  /// Whose value cannot be relied on, a key or a section; empty = of a whole file.
  std::string key;
  Order order = {};
  /// Further keys of that kind: those that were probably meant.
  std::vector<std::string> also = {};
  std::vector<std::string> details = {};  ///< lines that `what` has no room for
};

/// What is read, but by a name that it no longer has. Nothing is wrong with it.
struct Note {
  Place place;
  std::string what;  ///< "`data.max_sentences` is now `data.max_samples`; it is still read"

  std::string text() const;  ///< with the place in front
};

/// Whether a problem says that the value of `key` cannot be relied on: what is only the
/// consequence of one mistake is not a second one.
bool is_unreliable(const std::vector<Problem>& problems, const std::string& key);

/// Places of the keys that were given, of lists of tables and of their entries; the other keys have
/// their defaults. And notes on how they were given.
class Origins {
 public:
  void set(const std::string& key, Place place) { places_[key] = std::move(place); }
  bool given(const std::string& key) const;
  /// True for a key that was not given, and whose value was taken from elsewhere (InheritedValues
  /// in config/load.h).
  bool taken(const std::string& key) const;
  /// True when the last word came from the command line.
  bool overridden(const std::string& key) const;
  /// "my.toml:14:1: `optim.lr`", "`optim.lr` (default)", or of a taken value "`model.norm` (from
  /// runs/bert)".
  std::string of(const std::string& key) const;
  Order order_of(const std::string& key) const;

  /// Adds a note. The same words are noted once, at the first of their places.
  void note(Place place, std::string what);
  /// In the order of reading: files as they were opened, then the command line.
  const std::vector<Note>& notes() const { return notes_; }
  /// Keeps the notes on overrides alone: for files that Stretto wrote itself.
  void drop_notes_on_files();

 private:
  std::map<std::string, Place> places_;
  std::vector<Note> notes_;
};

/// The problems as somebody corrects them: line by line, then the command line, then defaults.
std::vector<Problem> in_order(std::vector<Problem> problems);

/// More problems than this have one cause, which the first of them show.
inline constexpr size_t kMostProblemsShown = 50;

/// What an Error of these problems says, without the word "error" in front; empty = there are none.
std::string problems_text(const std::vector<Problem>& problems);

/// All problems in one Error, in_order(), each with its place and hint; nothing when there are
/// none.
void throw_problems(const std::vector<Problem>& problems, ExitCode code = ExitCode::kUsage);

}  // namespace stretto::config
