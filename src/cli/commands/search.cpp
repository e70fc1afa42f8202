#include <iostream>

#include "base/build_id.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/program_path.h"
#include "base/signals.h"
#include "base/system_info.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "config/describe.h"
#include "search/explain.h"
#include "search/load_search.h"
#include "search/search_files.h"
#include "search/search_runner.h"
#include "search/watched_trial.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct SearchArguments {
  std::string file, directory;
  bool accept_data = false, json = false, quiet = false;
};

constexpr const char* kWatch = "watch";  // what a search starts on another host

struct WatchArguments {
  std::string build, folder, run;
  std::vector<std::string> variables, words;
};

int run_search(const SearchArguments& options) {
  if (options.file.empty() || options.directory.empty()) {
    throw Error(
        ExitCode::kUsage,
        std::string("stretto search: ") + (options.file.empty() ? "SPACE.toml" : "--dir") +
            " is missing",
        "stretto search SPACE.toml --dir DIR; `stretto search --help` shows how it is used");
  }
  // A process of a job would start trials that take themselves for its ranks.
  require_own_start("a search is one process", "start it without mpirun, srun or torchrun");
  ignore_broken_pipes();
  log::set_quiet(options.quiet);
  const fs::path directory = fs::absolute(options.directory);
  auto loaded = search::load_search(options.file, search::space_use(directory));
  tell_notes(loaded.origins);
  const std::string program = program_path();
  search::SearchRunner runner(
      {.directory = directory,
       .plan = std::move(loaded.plan),
       .command =
           [program](const search::TrialRun& run) { return search::train_words(program, run); },
       .cores = usable_cores(),
       .shown = fs::path(options.file).filename(),
       .points_place = loaded.origins.of("search.points"),
       .gpus = search::visible_gpus(),
       .hosts = std::move(loaded.hosts),
       .watcher = {program, "search", kWatch, "--build", hex64(build_id())},
       .accept_data = options.accept_data});
  const ExitCode code = runner.run();
  if (options.json) std::cout << search::search_json(runner.state()).dump(2) << "\n";
  return static_cast<int>(code);
}

int explain_search(const std::string& directory) {
  const fs::path journal = search::journal_path(directory);
  if (!fs::exists(journal)) {
    throw Error(ExitCode::kUsage, directory + " is no folder of a search: there is no journal",
                "name the folder that was given with --dir");
  }
  std::cout << search::explain(
      search::SearchState::replay(search::read_journal(journal).entries, journal.string()));
  return 0;
}

// Whatever is wrong here is wrong with this host, which the exit code tells the search.
int watch(const WatchArguments& options) {
  try {
    if (options.build != hex64(build_id())) {
      throw Error(ExitCode::kUsage, host_name() + " has another build of Stretto",
                  "install the same one on all hosts of a search");
    }
    return search::watch_trial({.words = options.words,
                                .folder = options.folder,
                                .run_directory = options.run,
                                .variables = options.variables});
  } catch (const Error& error) {
    log::error(error.message());
    return search::kHostCannotRun;
  }
}

int describe_part(const std::vector<std::string>& names) {
  search::SearchFileOptions defaults;
  const auto schema = search::search_schema(defaults);
  try {
    std::string text;
    for (const auto& name : names) {
      text += (text.empty() ? "" : "\n") + config::describe(schema, name);
    }
    std::cout << search::with_own_command(names.empty() ? config::describe(schema, "") : text);
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), search::with_own_command(error.advice()));
  }
  return 0;
}

using Action = std::shared_ptr<std::function<int()>>;

void declare_explain(CLI::App& app, const Action& action) {
  auto directory = std::make_shared<std::string>();
  auto* part = app.add_subcommand("explain", "the competitors and the cut-off of each rung");
  part->add_option("DIR", *directory, "folder of the search")->required()->type_name("");
  part->callback([=] { *action = [directory] { return explain_search(*directory); }; });
}

void declare_describe_part(CLI::App& app, const Action& action) {
  auto names = std::make_shared<std::vector<std::string>>();
  auto* part = app.add_subcommand("describe", "explain the keys of a search file");
  part->add_option("NAME", *names, "sections or keys; none: all sections")->type_name("");
  part->callback([=] { *action = [names] { return describe_part(*names); }; });
}

// Not for people, and therefore not in the help.
void declare_watch(CLI::App& app, const Action& action) {
  auto options = std::make_shared<WatchArguments>();
  auto* part = app.add_subcommand(kWatch, "run a trial of a search on another host");
  part->group("");
  part->add_option("--build", options->build)->required();
  part->add_option("--folder", options->folder)->required();
  part->add_option("--run", options->run)->required();
  for (auto* list : {part->add_option("--variable", options->variables),
                     part->add_option("--word", options->words)->required()}) {
    list->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }
  part->callback([=] { *action = [options] { return watch(*options); }; });
}

}  // namespace

std::function<int()> declare_search(CLI::App& app) {
  auto options = std::make_shared<SearchArguments>();
  auto action = std::make_shared<std::function<int()>>([options] { return run_search(*options); });
  app.add_option("SPACE.toml", options->file, "search file: what is searched, and how")
      ->type_name("");
  app.add_option("--dir", options->directory,
                 "folder of the search; one that is there goes on where it stopped")
      ->type_name("DIR");
  app.add_flag("--accept-data", options->accept_data,
               "go on although data have changed since the search began; data.json notes it");
  app.add_flag("--json", options->json, "print the trials as JSON at the end");
  app.add_flag("--quiet", options->quiet, "only warnings and errors on the screen");
  declare_explain(app, action);
  declare_describe_part(app, action);
  declare_watch(app, action);
  for (auto* part : app.get_subcommands({})) part->allow_extras();
  return [action] { return (*action)(); };
}

}  // namespace stretto::cli
