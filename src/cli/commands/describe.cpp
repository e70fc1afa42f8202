#include "config/describe.h"

#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "experiment/experiment_schema.h"
#include "search/search_plan.h"
#include "sweep/grid_options.h"

namespace stretto::cli {
namespace {

struct DescribeArguments {
  std::vector<std::string> names;
  bool markdown = false, schema = false, keys = false;
};

bool has_place(const config::Schema& schema, const std::string& name) {
  return schema.find(name) != nullptr || schema.find_section(name) != nullptr ||
         schema.find_list(name) != nullptr;
}

bool is_of_search_files(const std::string& name) {
  search::SearchFileOptions defaults;
  try {
    config::describe(search::search_schema(defaults), name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void throw_of_search_files(const std::string& name) {
  throw Error(ExitCode::kUsage, "`" + name + "` is of search files, and of no configuration",
              "`stretto search describe " + name + "` explains it");
}

std::string describe_name(const config::Schema& schema, const std::string& name) {
  // A section of search files is meant rather than a value of the same name, `space`.
  search::SearchFileOptions defaults;
  if (has_place(search::search_schema(defaults), name) && !has_place(schema, name)) {
    throw_of_search_files(name);
  }
  // A grid file of `stretto compress` has one section, and no command of its own.
  sweep::GridFileOptions grid;
  if (const auto grid_schema = config::schema_of(grid);
      has_place(grid_schema, name) && !has_place(schema, name)) {
    return config::describe(grid_schema, name);
  }
  try {
    return config::describe(schema, name);
  } catch (const Error&) {
    if (is_of_search_files(name)) throw_of_search_files(name);
    throw;
  }
}

int run_describe(const DescribeArguments& options) {
  experiment::Experiment defaults;
  const auto schema = experiment::experiment_schema(defaults);
  if (options.markdown) {
    std::cout << config::reference_markdown(schema);
  } else if (options.schema) {
    std::cout << config::json_schema(schema);
  } else if (options.keys) {
    for (const auto& key : schema.keys) std::cout << key.path << "\n";
  } else if (options.names.empty()) {
    std::cout << config::describe(schema, "");
  }
  // All of them or none: an unknown name is an error before anything is printed.
  std::string text;
  for (const auto& name : options.names) {
    text += (text.empty() ? "" : "\n") + describe_name(schema, name);
  }
  std::cout << text;
  return 0;
}

}  // namespace

std::function<int()> declare_describe(CLI::App& app) {
  auto options = std::make_shared<DescribeArguments>();
  app.add_option("NAME", options->names,
                 "sections (optim), keys (optim.lr) or components (adamw); none: all sections")
      ->type_name("");
  app.add_flag("--markdown", options->markdown, "the whole reference: docs/config.md");
  app.add_flag("--schema", options->schema, "JSON schema, as `stretto schema` prints it");
  app.add_flag("--keys", options->keys, "the name of every key, one a line");
  return [options] { return run_describe(*options); };
}

std::function<int()> declare_schema(CLI::App&) {
  return [] { return run_describe({.schema = true}); };
}

}  // namespace stretto::cli
