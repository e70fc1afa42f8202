#include "cli/command.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include "base/error.h"
#include "base/text.h"

namespace stretto::cli {
namespace {

// A word that no option took: a mistyped option, or one positional too many.
[[noreturn]] void refuse_extra(const Command& command, CLI::App& app, const std::string& name,
                               const std::string& word) {
  const std::string help = "`" + name + " --help` lists the options";
  const size_t letters = word.find_first_not_of('-');
  const std::string key = letters == std::string::npos ? std::string() : word.substr(letters);
  if (is_override(key)) {
    if (takes_overrides(app)) {
      throw Error(ExitCode::kUsage, name + ": unknown option `" + printable(word) + "`",
                  "keys of the configuration have no dashes: write `" + printable(key) + "`");
    }
    throw Error(ExitCode::kUsage,
                name + " takes no key=value, but there is `" + printable(word) + "`",
                std::string(command.instead_of_keys) + "; " + help);
  }
  if (!word.starts_with("-")) {
    throw Error(ExitCode::kUsage, name + ": unexpected `" + printable(word) + "`", help);
  }
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& known : option->get_lnames()) names.push_back("--" + known);
  }
  const std::string typed = word.substr(0, word.find('='));
  std::string near = closest(typed, names);
  if (near.empty() && typed.size() > 3) {  // `--checkpoints` for `--checkpoint`, `--ref` for …
    for (const auto& known : names) {
      if (known.starts_with(typed) || typed.starts_with(known)) near = known;
    }
  }
  throw Error(ExitCode::kUsage, name + ": unknown option `" + printable(typed) + "`",
              near.empty() ? help : "did you mean `" + near + "`? " + help);
}

void check_extras(const Command& command, CLI::App& app, const std::string& name) {
  const auto extras = app.remaining(false);
  const auto parts = app.get_subcommands({});
  if (!parts.empty() && !extras.empty() && !extras.front().starts_with("-") &&
      !is_override(extras.front())) {
    std::vector<std::string> names;
    for (const auto* part : parts) {
      if (!part->get_group().empty()) names.push_back(part->get_name());
    }
    const std::string near = closest(extras.front(), names);
    throw Error(
        ExitCode::kUsage,
        name + ": there is no `" + printable(extras.front()) + "`; there are " + join(names, ", "),
        near.empty() ? "`" + name + " --help` explains them" : "did you mean `" + near + "`?");
  }
  for (const auto& word : extras) {
    if (word.starts_with("-") && word != "--") refuse_extra(command, app, name, word);
  }
  if (!extras.empty()) refuse_extra(command, app, name, extras.front());
  for (auto* sub : app.get_subcommands()) check_extras(command, *sub, name + " " + sub->get_name());
}

// "Could not convert: --beam = x" and "--beam: 1 required INT missing" in our own words.
std::string in_our_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string kind = error.get_name();
  if (kind == "ConversionError") {
    const size_t colon = text.find(": "), equals = text.find(" = ");
    if (colon != std::string::npos && equals != std::string::npos && equals > colon) {
      return "`" + printable(text.substr(equals + 3)) + "` is no value for " +
             text.substr(colon + 2, equals - colon - 2) + ", which takes a number";
    }
  }
  if (kind == "ArgumentMismatch") return text.substr(0, text.find(':')) + " needs a value";
  if (kind == "RequiredError") {
    if (text.starts_with("A subcommand")) return "a word is missing after it";
    const size_t end = text.find(" is required");
    if (end != std::string::npos) return text.substr(0, end) + " is missing";
  }
  return printable(text, 1000);
}

}  // namespace

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (name == command.name) return command;
    names.emplace_back(command.name);
  }
  const std::string near = closest(name, names);
  throw Error(ExitCode::kUsage, "unknown command `" + printable(name) + "`",
              near.empty() ? "commands: " + join(names, ", ") : "did you mean `" + near + "`?");
}

DeclaredCommand declare(const Command& command) {
  auto app = std::make_unique<CLI::App>(command.summary, std::string("stretto ") + command.name);
  app->set_help_flag("-h,--help", "print this help");
  app->allow_extras();
  app->get_formatter()->column_width(32);
  app->get_formatter()->label("OPTIONS", "OPTION…");
  app->get_formatter()->label("REQUIRED", "");
  app->footer(std::string("Examples:\n") + command.examples);
  auto run = command.declare(*app);
  return {std::move(app), std::move(run)};
}

int run_command(const Command& command, const std::vector<std::string>& words) {
  auto declared = declare(command);
  const std::string name = std::string("stretto ") + command.name;
  try {
    // CLI11 takes the words from the back.
    declared.app->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    std::cout << declared.app->help();
    return 0;
  } catch (const CLI::ParseError& error) {
    // A mistyped option often is the cause of what CLI11 complains about.
    check_extras(command, *declared.app, name);
    std::string whole = name;
    for (const auto* part : declared.app->get_subcommands()) whole += " " + part->get_name();
    throw Error(ExitCode::kUsage, whole + ": " + in_our_words(error),
                "`" + whole + " --help` shows how it is used");
  }
  check_extras(command, *declared.app, name);
  return declared.run();
}

bool takes_overrides(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    return option->get_positional() && option->get_name().find("key=value") != std::string::npos;
  });
}

bool is_override(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  bool has_dot = false;
  for (const char c : word.substr(0, equals)) {
    if (c == '.') {
      has_dot = true;
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') {
      return false;
    }
  }
  return has_dot;
}

}  // namespace stretto::cli
