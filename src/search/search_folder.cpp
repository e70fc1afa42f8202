#include "search/search_folder.h"

#include "base/error.h"
#include "base/text.h"
#include "search/journal.h"
#include "search/search_state.h"

namespace stretto::search {

namespace fs = std::filesystem;

namespace {

void require_place(const fs::path& directory) {
  std::error_code ignored;
  if (fs::exists(directory, ignored) && !fs::is_directory(directory, ignored)) {
    throw Error(ExitCode::kUsage, directory.string() + " is not a folder",
                "give another folder with --dir");
  }
  if (fs::exists(directory / "run.json", ignored) &&
      !fs::exists(journal_path(directory), ignored)) {
    throw Error(ExitCode::kUsage, directory.string() + " is a run folder, not that of a search",
                "give another folder with --dir");
  }
  make_directories(directory / "trials");
}

}  // namespace

fs::path trial_directory(const fs::path& directory, TrialId trial) {
  return directory / "trials" / std::to_string(trial);
}

fs::path journal_path(const fs::path& directory) {
  return directory / "journal";
}

SpaceUse space_use(const fs::path& directory) {
  const fs::path path = journal_path(directory);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const auto journal = read_journal(path);
  if (journal.entries.empty()) return {};
  const auto state = SearchState::replay(journal.entries, path.string());
  return {.begins = false, .used_points = state.num_enqueued()};
}

FileLock lock_search(const fs::path& directory) {
  require_place(directory);
  return FileLock::try_now(directory / ".lock", "stretto search");
}

void require_no_trials(const fs::path& directory) {
  std::error_code ignored;
  int64_t found = 0;
  for (const auto& entry : fs::directory_iterator(directory / "trials", ignored)) {
    found += entry.is_directory(ignored) ? 1 : 0;
  }
  if (found == 0) return;
  const fs::path path = journal_path(directory);
  throw Error(ExitCode::kBadData,
              path.string() + ": is " + (fs::exists(path, ignored) ? "empty" : "missing") +
                  ", but " + (directory / "trials").string() + " holds " + counted(found, "trial"),
              "put the journal back from a copy: trials that are ahead of it keep what they have "
              "trained. Without a copy, search into another folder with --dir");
}

}  // namespace stretto::search
