#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "search/search_state.h"

namespace stretto::search {

/// The lines of the live table: the trials that train, then the best of the others, at most `rows`
/// of them, each no wider than `columns`.
std::vector<std::string> table_lines(const SearchState& state, size_t rows, size_t columns);

/// "optim.lr=0.001 model.d_model=128", shortened to the last name of each key.
std::string short_point(const Space& space, const Point& point);

/// What a search says while it runs: a live table on a terminal, plain lines elsewhere and in
/// DIR/log.txt.
class SearchView {
 public:
  SearchView();
  ~SearchView();
  SearchView(const SearchView&) = delete;
  SearchView& operator=(const SearchView&) = delete;

  /// What the search is set up to do.
  void opened(const SearchState& state);
  void began(const SearchState& state, const Job& job);
  void reported(const SearchState& state, const Job& job);
  void failed(const SearchState& state, const Job& job, bool tried_again);
  /// Draws the table anew, twice a second at the most.
  void tick(const SearchState& state);
  /// Takes the table off the screen; the end is reported in plain lines.
  void finish();
  /// The best trial, and where the files of the search are.
  void ended(const SearchState& state, const std::filesystem::path& directory, bool is_time_up);

 private:
  // Before a line of the log: the table is drawn anew behind it.
  void renew(const SearchState& state);

  struct Screen;
  std::unique_ptr<Screen> screen_;  // null without a terminal
};

}  // namespace stretto::search
