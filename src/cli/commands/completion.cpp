#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "experiment/experiment_schema.h"

namespace stretto::cli {
namespace {

struct OptionWords {
  std::string name;  ///< "--run"
  std::string help;
  bool takes_value = false;
};

/// What can follow one command, read from the declarations that parse it.
struct CommandWords {
  std::string name, summary;
  std::vector<std::string> parts;  ///< `train`, `encode` and `decode` of tokenizer
  std::vector<OptionWords> options;
  bool takes_keys = false;
};

void add_options(const CLI::App& app, CommandWords& words) {
  words.takes_keys = words.takes_keys || takes_overrides(app);
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) {
      const std::string dashed = "--" + name;
      const bool known = std::any_of(words.options.begin(), words.options.end(),
                                     [&](const auto& other) { return other.name == dashed; });
      if (!known) {
        words.options.push_back(
            {dashed, option->get_description(), option->get_items_expected_max() > 0});
      }
    }
  }
}

std::vector<CommandWords> all_words() {
  std::vector<CommandWords> list;
  for (const auto& command : commands()) {
    const auto declared = declare(command);
    CommandWords words{.name = command.name, .summary = command.summary};
    add_options(*declared.app, words);
    for (const auto* part : declared.app->get_subcommands({})) {
      if (part->get_group().empty()) continue;  // not for people
      words.parts.push_back(part->get_name());
      add_options(*part, words);
    }
    list.push_back(std::move(words));
  }
  return list;
}

std::vector<std::string> option_names(const CommandWords& words) {
  std::vector<std::string> names;
  for (const auto& option : words.options) names.push_back(option.name);
  return names;
}

/// Keys as they are typed, `optim.lr=`, and the values of those that have choices.
struct KeyWords {
  std::vector<std::string> keys;
  std::vector<std::pair<std::string, std::vector<std::string>>> choices;
};

KeyWords key_words() {
  KeyWords words;
  experiment::Experiment defaults;
  for (const auto& key : experiment::experiment_schema(defaults).keys) {
    words.keys.push_back(key.path + "=");
    if (std::holds_alternative<bool*>(key.value)) {
      words.choices.push_back({key.path, {"true", "false"}});
    } else if (!key.range.choices.empty()) {
      words.choices.push_back({key.path, key.range.choices});
    }
  }
  return words;
}

std::vector<std::string> command_names(const std::vector<CommandWords>& list) {
  std::vector<std::string> names;
  for (const auto& words : list) names.push_back(words.name);
  return names;
}

std::string bash_script() {
  const auto list = all_words();
  const auto keys = key_words();
  std::string out =
      "# bash completion of stretto; made by `stretto completion bash`\n"
      "_stretto() {\n"
      "  local line=${COMP_LINE:0:COMP_POINT} word options='' parts='' keys=''\n"
      "  word=${line##* }\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '" +
      join(command_names(list), " ") +
      " --help --version' -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const auto& words : list) {
    out += "    " + words.name + ") options='" + join(option_names(words), " ") + "'";
    if (!words.parts.empty()) out += " parts='" + join(words.parts, " ") + "'";
    if (words.takes_keys) out += " keys=yes";
    out += " ;;\n";
  }
  out +=
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
      "  elif ((COMP_CWORD == 2)) && [[ -n $parts ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$parts\" -- \"$word\")\n"
      "  elif [[ -n $keys && $word == *=* ]]; then\n"
      "    case ${word%%=*} in\n";
  for (const auto& [key, choices] : keys.choices) {
    out += "      " + key + ") mapfile -t COMPREPLY < <(compgen -W '" + join(choices, " ") +
           "' -- \"${word#*=}\") ;;\n";
  }
  out +=
      "    esac\n"
      "  elif [[ -n $keys && -n $word ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '" +
      join(keys.keys, " ") +
      "' -- \"$word\"; compgen -f -- \"$word\")\n"
      "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
      "  fi\n"
      "}\n"
      "complete -o bashdefault -o default -F _stretto stretto\n";
  return out;
}

// In single quotes, for zsh's `name:text` lists and for fish.
std::string quoted(const std::string& text, bool escape_colons) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += escape_colons ? "'\\''" : "\\'";
    } else if (c == ':' && escape_colons) {
      out += "\\:";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string zsh_script() {
  const auto list = all_words();
  const auto keys = key_words();
  std::string out =
      "#compdef stretto\n"
      "# zsh completion of stretto; made by `stretto completion zsh`\n"
      "_stretto() {\n"
      "  local -a commands options parts keys values\n"
      "  local takes_keys='' word=$words[CURRENT]\n"
      "  commands=(\n";
  for (const auto& words : list) {
    out += "    " + quoted(words.name + ":" + words.summary, false) + "\n";
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const auto& words : list) {
    out += "    " + words.name + ")\n      options=(\n";
    for (const auto& option : words.options) {
      out += "        " + option.name + ":" + quoted(option.help, true) + "\n";
    }
    out += "      )\n";
    if (!words.parts.empty()) out += "      parts=(" + join(words.parts, " ") + ")\n";
    if (words.takes_keys) out += "      takes_keys=yes\n";
    out += "      ;;\n";
  }
  out +=
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    _describe option options\n"
      "  elif (( CURRENT == 3 && $#parts )); then\n"
      "    compadd -- $parts\n"
      "  elif [[ -n $takes_keys && $word == *=* ]]; then\n"
      "    case ${word%%=*} in\n";
  for (const auto& [key, choices] : keys.choices) {
    out += "      " + key + ") values=(" + join(choices, " ") + ") ;;\n";
  }
  out +=
      "    esac\n"
      "    compset -P '*='\n"
      "    (( $#values )) && compadd -- $values || _files\n"
      "  else\n"
      "    [[ -n $takes_keys && -n $word ]] && compadd -S '' -- " +
      join(keys.keys, " ") +
      "\n"
      "    _files\n"
      "  fi\n"
      "}\n"
      // Found on fpath the file itself is the function; sourced, it has to be made known.
      "if [[ $funcstack[1] == _stretto ]]; then _stretto \"$@\"; else compdef _stretto stretto; "
      "fi\n";
  return out;
}

std::string fish_script() {
  const auto list = all_words();
  const auto keys = key_words();
  std::string out = "# fish completion of stretto; made by `stretto completion fish`\n";
  for (const auto& words : list) {
    out += "complete -c stretto -n __fish_use_subcommand -f -a " + words.name + " -d " +
           quoted(words.summary, false) + "\n";
  }
  out += "set -l with_keys '__fish_seen_subcommand_from";
  for (const auto& words : list) {
    if (words.takes_keys) out += " " + words.name;
  }
  out += "'\n";
  for (const auto& words : list) {
    const std::string seen = "'__fish_seen_subcommand_from " + words.name + "'";
    for (const auto& option : words.options) {
      out += "complete -c stretto -n " + seen + " -l " + option.name.substr(2) + " -d " +
             quoted(option.help, false) + (option.takes_value ? " -r" : "") + "\n";
    }
    if (!words.parts.empty()) {
      out += "complete -c stretto -n " + seen + " -a '" + join(words.parts, " ") + "'\n";
    }
  }
  out += "complete -c stretto -n $with_keys -a '" + join(keys.keys, " ") + "'\n";
  for (const auto& [key, choices] : keys.choices) {
    std::string values;
    for (const auto& choice : choices) values += " " + key + "=" + choice;
    out += "complete -c stretto -n $with_keys -a '" + values.substr(1) + "'\n";
  }
  return out;
}

}  // namespace

std::function<int()> declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("");
  return [shell] {
    if (*shell == "bash") {
      std::cout << bash_script();
    } else if (*shell == "zsh") {
      std::cout << zsh_script();
    } else {
      std::cout << fish_script();
    }
    return 0;
  };
}

}  // namespace stretto::cli
