#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "base/log.h"
#include "search/load_search.h"
#include "search/search_files.h"
#include "search/search_runner.h"
#include "tests/distributed/scoped_variable.h"
#include "tests/search/bench.h"

namespace stretto::search {

/// Searches whose trials, and other hosts, are stand-ins. A file that includes this is told
/// STRETTO_SOURCE_DIR (tests/CMakeLists.txt).
class RunnerBench : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_program("python3").empty()) GTEST_SKIP() << "the stand-in for trials needs python3";
    log::set_quiet(true);
    std::filesystem::create_directories(failures_);
  }
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
  }

  std::string file(const std::string& search,
                   const std::string& rest = testing::kHalving + testing::kLearningRate) {
    return bench_.file(search, rest);
  }

  RunnerSetup setup(const std::string& path, const std::string& directory) {
    return {.directory = bench_.folder / directory,
            .plan = load_search(path, space_use(bench_.folder / directory)).plan,
            .command =
                [](const TrialRun& run) {
                  std::vector<std::string> words{find_program("python3"),
                                                 STRETTO_SOURCE_DIR "/tests/search/stand_in.py",
                                                 run.directory.string(), std::to_string(run.until)};
                  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
                  return words;
                },
            .cores = 2,
            .shown = "space.toml",
            .tick = std::chrono::milliseconds(2)};
  }

  ExitCode run(const std::string& path, const std::string& directory) {
    return SearchRunner(setup(path, directory)).run();
  }

  /// Trials on other hosts, which are stand-ins too.
  RunnerSetup with_hosts(const std::string& path, const std::string& directory,
                         const std::string& hosts) {
    auto here = setup(path, directory);
    const std::string ssh = STRETTO_SOURCE_DIR "/tests/search/stand_in_ssh.py";
    here.plan.options.search.remote_shell = {find_program("python3"), ssh};
    here.watcher = {find_program("python3"), ssh, "--watch"};
    here.hosts = parse_hosts(hosts, "hosts");
    here.host_pause = std::chrono::milliseconds(20);
    std::filesystem::create_directories(hosts_);
    return here;
  }

  /// Adds a way in which a host fails.
  void fail_host(const std::string& host, const std::string& words) {
    std::filesystem::create_directories(hosts_);
    std::ofstream(hosts_ / host, std::ios::app) << words << "\n";
  }

  bool log_has(const std::string& directory, const std::string& text) {
    return read_file(bench_.folder / directory / "log.txt").find(text) != std::string::npos;
  }

  /// What the journal says.
  SearchState replayed(const std::string& directory) {
    const auto journal = read_journal(journal_path(bench_.folder / directory));
    return SearchState::replay(journal.entries, "test");
  }

  /// The table without what is no function of file and seed.
  std::string table(const std::string& directory) {
    const auto state = replayed(directory);
    std::string text, file;
    for (const auto& trial : state.trials()) {
      auto json = trial_json(state, trial);
      json.erase("seconds");
      text += json.dump() + "\n";
    }
    for (const auto& line : lines_of(directory + "/trials.jsonl")) {
      auto json = nlohmann::ordered_json::parse(line);
      json.erase("seconds");
      file += json.dump() + "\n";
    }
    EXPECT_EQ(file, text);
    return text;
  }

  std::vector<std::string> lines_of(const std::string& name) {
    std::ifstream in(bench_.folder / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  void fail(TrialId trial, const std::string& codes) {
    std::ofstream(failures_ / std::to_string(trial)) << codes;
  }

  std::vector<TrialId> with_checkpoints(const std::string& directory) {
    std::vector<TrialId> trials;
    for (TrialId trial = 0; trial < 100; ++trial) {
      if (std::filesystem::exists(trial_directory(bench_.folder / directory, trial) /
                                  "checkpoints")) {
        trials.push_back(trial);
      }
    }
    return trials;
  }

  testing::SearchBench bench_;
  std::filesystem::path failures_ = bench_.folder / "failures";
  std::filesystem::path hosts_ = bench_.folder / "hosts";
  testing::ScopedVariable variable_{"STAND_IN_FAILURES", failures_.c_str()};
  testing::ScopedVariable hosts_variable_{"STAND_IN_HOSTS", hosts_.c_str()};
};

}  // namespace stretto::search
