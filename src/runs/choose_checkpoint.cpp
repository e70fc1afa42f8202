#include "runs/choose_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "runs/train_state.h"
#include "store/manifest.h"
#include "store/run_record.h"

namespace stretto::runs {

namespace fs = std::filesystem;

namespace {

using Loaded = store::LoadedCheckpoint;
constexpr std::string_view kCheckpoints = "checkpoints";
constexpr std::string_view kStep = "step_";

// Names that a user may give, for the message when the one given is not there.
std::vector<std::string> selectable(const fs::path& run_directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(run_directory / kCheckpoints, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && !name.starts_with("bad-") && is_checkpoint(entry->path())) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void throw_no_checkpoint(const fs::path& run_directory, const std::string& selector) {
  const auto names = selectable(run_directory);
  const bool lacks_best = selector == "best";
  throw Error(
      ExitCode::kUsage,
      run_directory.string() + ": no checkpoint" + (selector.empty() ? "" : " `" + selector + "`"),
      names.empty() ? "train first: stretto train CONFIG --run " + run_directory.string()
                    : "there are: " + std::string(lacks_best ? "" : "best, ") + "last, " +
                          join(names, ", ") + "; a path may name a checkpoint or a run elsewhere" +
                          (lacks_best ? ". No validation has marked one as the best" : ""));
}

// nullopt when it is damaged, and then the reason in `broken`.
std::optional<Loaded> load_if_whole(const fs::path& path, std::vector<std::string>& broken) {
  std::optional<Loaded> loaded;
  try {
    loaded = store::CheckpointStore::load(path, store::CheckpointPart::kModel);
  } catch (const store::NewerFormat&) {
    throw;  // whole: an older one must not take its place without a word
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    broken.emplace_back(error.what());
    log::warn("checkpoint " + path.string() + " is damaged and is left out: " + error.what());
    return std::nullopt;
  }
  require_own_run(*loaded);  // complete, and not to be passed over
  return loaded;
}

Loaded require_newest(const fs::path& run_directory, std::vector<std::string>& broken) {
  auto newest = newest_checkpoints(run_directory, 1, broken);
  if (newest.empty()) throw_no_whole_checkpoint(run_directory, broken);
  return std::move(newest.front());
}

// The best one that a state tells of, while it is still there.
std::optional<fs::path> best_known_to(const Loaded& newest, const fs::path& run_directory) {
  const auto state = TrainState::from_json(newest.state_json, newest.directory.string());
  const fs::path path = store::CheckpointStore(run_directory).path_of(state.best_step());
  if (state.best_step() == 0 || !is_checkpoint(path)) return std::nullopt;
  return path;
}

std::optional<int64_t> as_step(const std::string& selector) {
  int64_t step = 0;
  const char* const end = selector.data() + selector.size();
  const auto [stop, error] = std::from_chars(selector.data(), end, step);
  return error == std::errc() && stop == end ? std::optional(step) : std::nullopt;
}

// Where a word of a user leads; nullopt when it is no path.
std::optional<fs::path> as_path(const fs::path& run_directory, const std::string& selector) {
  std::error_code error;
  if (as_step(selector)) return std::nullopt;
  const bool has_slash = selector.find('/') != std::string::npos;
  if (!has_slash && (fs::exists(run_directory / kCheckpoints / selector, error) ||
                     !fs::is_directory(selector, error))) {
    return std::nullopt;
  }
  fs::path path = fs::path(selector).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // "run/" is "run"
}

[[noreturn]] void throw_no_place(const fs::path& path, const std::string& what) {
  throw Error(ExitCode::kUsage, "checkpoint " + printable(path.string(), 4096) + ": " + what,
              "give the folder of a checkpoint (RUN/checkpoints/step_00000100) or of a run; a name "
              "without `/` is one of the run's own");
}

// A checkpoint's folder as it is, or the run whose best is meant.
fs::path resolve_path(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw_no_place(path, "there is no such folder");
  if (!fs::is_directory(path, error)) throw_no_place(path, "is no folder");
  if (is_checkpoint(path)) return path;
  if (store::read_run_record(path)) return find_checkpoint(path, "");
  throw_no_place(path, "is neither a checkpoint nor a run");
}

fs::path resolve_name(const fs::path& run_directory, const std::string& selector) {
  const auto step = as_step(selector);
  const fs::path path = step ? store::CheckpointStore(run_directory).path_of(*step)
                             : run_directory / kCheckpoints / selector;
  if (!is_checkpoint(path)) throw_no_checkpoint(run_directory, selector);
  return path;
}

std::vector<std::string> words_of(const std::string& selectors) {
  std::error_code error;
  if (fs::is_directory(selectors, error)) return {selectors};
  std::vector<std::string> words;
  for (const auto& word : split(selectors, ',')) words.push_back(trim(word));
  const bool has_gap = words.size() > 1 && std::find(words.begin(), words.end(), "") != words.end();
  if (has_gap) {
    throw Error(ExitCode::kUsage,
                "checkpoints `" + printable(selectors) + "`: a place in it is empty",
                "write a name, a step or a path between two commas");
  }
  if (words.empty()) words.emplace_back();
  return words;
}

}  // namespace

bool is_checkpoint(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) return false;
  // A step's folder without a manifest is a damaged checkpoint, and its reader says so.
  return directory.filename().string().starts_with(kStep) ||
         fs::exists(fs::symlink_status(directory / store::kManifestName, error));
}

fs::path run_of(const fs::path& checkpoint) {
  std::error_code error;
  fs::path folder = fs::absolute(checkpoint, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at its end
  const fs::path place = folder.parent_path();
  if (place.filename() != kCheckpoints) return {};
  const fs::path run = place.parent_path();
  return fs::exists(run / "run.json", error) ? run : fs::path();
}

void require_own_run(const Loaded& checkpoint) {
  const fs::path run = run_of(checkpoint.directory);
  const auto record = run.empty() ? std::nullopt : store::read_run_record(run);
  if (!record || record->run_id == checkpoint.run_id) return;
  throw Error(ExitCode::kBadData,
              checkpoint.directory.string() + " is a checkpoint of run " +
                  printable(checkpoint.run_id) + ", and its folder holds run " + record->run_id,
              "move it back to its own run folder: --checkpoint PATH uses it from there, and "
              "train.init_from begins a run with its weights");
}

fs::path find_checkpoint(const fs::path& run_directory, const std::string& selector) {
  if (selector.empty() || selector == "last") {
    return open_checkpoint(run_directory, selector).directory;
  }
  if (selector == "best") {
    std::vector<std::string> broken;
    const auto best = best_known_to(require_newest(run_directory, broken), run_directory);
    if (!best) throw_no_checkpoint(run_directory, selector);
    return *best;
  }
  const auto path = as_path(run_directory, selector);
  return path ? resolve_path(*path) : resolve_name(run_directory, selector);
}

Loaded open_checkpoint(const fs::path& run_directory, const std::string& selector) {
  if (selector.empty() || selector == "last") {
    std::vector<std::string> broken;
    auto chosen = require_newest(run_directory, broken);
    const auto best = selector.empty() ? best_known_to(chosen, run_directory) : std::nullopt;
    if (best && *best != chosen.directory) {
      if (auto loaded = load_if_whole(*best, broken)) chosen = *std::move(loaded);
    }
    if (!broken.empty()) log::warn("taken in its place: " + chosen.directory.string());
    return chosen;
  }
  const fs::path path = find_checkpoint(run_directory, selector);
  std::optional<Loaded> loaded;
  try {
    loaded = store::CheckpointStore::load(path, store::CheckpointPart::kModel);
  } catch (const store::NewerFormat&) {
    throw;
  } catch (const Error& error) {  // this one was asked for, and no other
    if (error.code() != ExitCode::kBadData) throw;
    throw Error(error.code(), error.what(),
                "the checkpoint is damaged; name another one, or none: then the best or the last "
                "one that is whole is taken");
  }
  require_own_run(*loaded);
  return *std::move(loaded);
}

std::vector<Loaded> open_checkpoints(const fs::path& run_directory, const std::string& selectors) {
  std::vector<Loaded> opened;
  for (const auto& word : words_of(selectors)) {
    opened.push_back(open_checkpoint(run_directory, word));
  }
  return opened;
}

std::vector<fs::path> find_checkpoints(const fs::path& run_directory,
                                       const std::string& selectors) {
  std::vector<fs::path> found;
  for (const auto& word : words_of(selectors))
    found.push_back(find_checkpoint(run_directory, word));
  return found;
}

std::vector<Loaded> newest_checkpoints(const fs::path& run_directory, int64_t count,
                                       std::vector<std::string>& broken) {
  const store::CheckpointStore store(run_directory);
  const auto steps = store.step_folders();
  std::vector<Loaded> loaded;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (static_cast<int64_t>(loaded.size()) == count) break;
    if (auto whole = load_if_whole(store.path_of(*step), broken)) {
      loaded.push_back(*std::move(whole));
    }
  }
  return loaded;
}

void throw_no_whole_checkpoint(const fs::path& run_directory,
                               const std::vector<std::string>& broken) {
  if (broken.empty()) throw_no_checkpoint(run_directory, "");
  const std::string what = broken.size() == 1 ? ": its only checkpoint is not valid: "
                                              : ": none of its " + std::to_string(broken.size()) +
                                                    " checkpoints is valid; the newest: ";
  throw Error(ExitCode::kBadData, run_directory.string() + what + broken.front(),
              "restore the folder from a copy, or train, or compress, again");
}

}  // namespace stretto::runs
