#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/validators.h"

namespace stretto::cli {

/// One word after `stretto`.
struct Command {
  const char* name;
  const char* summary;   ///< one line, for the list of commands
  const char* examples;  ///< command lines, one a line, that stand below `--help`
  /// Adds the command's options and says what runs once they are parsed. The function it returns
  /// returns the exit code, and throws stretto::Error for what the user can act on.
  std::function<int()> (*declare)(CLI::App& app);
  /// For a command that takes no keys: where they are given instead, as advice.
  const char* instead_of_keys = "train, check, eval and infer take keys of the configuration";
};

/// Every command there is, in the order of `stretto --help`.
std::span<const Command> commands();

/// An App with the options of `command`, `--help` and the examples below it.
struct DeclaredCommand {
  std::unique_ptr<CLI::App> app;
  std::function<int()> run;
};
DeclaredCommand declare(const Command& command);

/// Parses what stands after the command's name and runs it.
/// Throws Error(kUsage) that names what is wrong with the words, with the nearest known option.
int run_command(const Command& command, const std::vector<std::string>& words);

/// The command of this name. Throws Error(kUsage) with the nearest one.
const Command& find_command(const std::string& name);

/// The last positional words of train, eval and infer, `section.key=value`.
bool is_override(const std::string& word);
/// Whether the command takes such words.
bool takes_overrides(const CLI::App& app);

std::function<int()> declare_average(CLI::App& app);
std::function<int()> declare_bench(CLI::App& app);
std::function<int()> declare_check(CLI::App& app);
std::function<int()> declare_completion(CLI::App& app);
std::function<int()> declare_compress(CLI::App& app);
std::function<int()> declare_describe(CLI::App& app);
std::function<int()> declare_distill(CLI::App& app);
std::function<int()> declare_doctor(CLI::App& app);
std::function<int()> declare_embed(CLI::App& app);
std::function<int()> declare_eval(CLI::App& app);
std::function<int()> declare_export(CLI::App& app);
std::function<int()> declare_import(CLI::App& app);
std::function<int()> declare_infer(CLI::App& app);
std::function<int()> declare_replay(CLI::App& app);
std::function<int()> declare_plan(CLI::App& app);
std::function<int()> declare_report(CLI::App& app);
std::function<int()> declare_schema(CLI::App& app);
std::function<int()> declare_score(CLI::App& app);
std::function<int()> declare_search(CLI::App& app);
std::function<int()> declare_tokenizer(CLI::App& app);
std::function<int()> declare_train(CLI::App& app);

}  // namespace stretto::cli
