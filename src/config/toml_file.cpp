#include "config/toml_file.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace stretto::config {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr int kMaxNesting = 16;
constexpr size_t kMaxFiles = 64;

// The end of the string that starts at `at`; the end of the line when it is not closed.
size_t skip_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string_view triple = quote == '"' ? "\"\"\"" : "'''";
  if (text.substr(at, 3) == triple) {
    size_t i = at + 3;
    while (i < text.size() && text.substr(i, 3) != triple) {
      i += quote == '"' && text[i] == '\\' ? 2 : 1;
    }
    i = std::min(i + 3, text.size());
    // Up to two quotes more may belong to the string.
    while (i < text.size() && text[i] == quote) ++i;
    return i;
  }
  size_t i = at + 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n') {
    i += quote == '"' && text[i] == '\\' ? 2 : 1;
  }
  return std::min(i + 1, text.size());
}

class FileReader {
 public:
  explicit FileReader(std::vector<Problem>& problems) : problems_(problems) {}

  /// Where an `include` stands.
  struct IncludePlace {
    std::string place;
    Order order;
  };

  void file(const fs::path& path, const std::string& shown, const IncludePlace& from) {
    if (++num_files_ > kMaxFiles) {
      if (num_files_ == kMaxFiles + 1) {
        problem(from, "more than " + std::to_string(kMaxFiles) + " files are included",
                "include fewer: does one include itself by another path?");
      }
      return;
    }
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(path, ignored);
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end()) {
      problem(from, "`include` of " + printable(shown) + " goes round in a circle",
              "remove one `include`");
      return;
    }
    const auto type = fs::status(path, ignored).type();
    if (type == fs::file_type::fifo || type == fs::file_type::character ||
        type == fs::file_type::socket) {
      problem(from, printable(shown, 4096) + " is no regular file",
              "write the configuration into a file: each process reads it, and each resume");
      return;
    }
    if (type != fs::file_type::regular) {
      problem(from, "no configuration file " + printable(shown, 4096),
              from.place.empty() ? "give the path of a .toml file: the recipes are in configs/"
                                 : "`include` is relative to the file that states it");
      return;
    }
    std::string bytes;
    try {
      bytes = read_file(path, kMaxFileBytes);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kIo) throw;
      problem({shown, {.source = next_number_++}}, error.what(), error.advice());
      return;
    }
    open_.push_back(canonical);
    text(bytes, shown, path.parent_path());
    open_.pop_back();
  }

  void text(std::string_view text, const std::string& shown, const fs::path& base) {
    const int number = next_number_++;
    const IncludePlace whole{shown, {.source = number}};
    if (text.size() > kMaxFileBytes) {
      return problem(whole, "larger than " + human_bytes(kMaxFileBytes),
                     "is it a configuration, and not its data?");
    }
    if (!is_valid_utf8(text)) return problem(whole, "not UTF-8", "TOML files are UTF-8 text");
    if (toml_nesting(text) > kMaxNesting) {
      return problem(whole, "nested deeper than " + std::to_string(kMaxNesting) + " tables",
                     "a configuration has sections, and tables in them");
    }
    toml::parse_result result = toml::parse(text, shown);
    if (!result) {
      const auto& error = result.error();
      return problem(at(error.source(), shown, number), printable(error.description(), 1000),
                     "correct it there: the file is not valid TOML, in which texts stand in "
                     "quotes, and numbers, true and false do not");
    }
    toml::table table = std::move(result).table();
    include(table, shown, base, number);
    files.push_back({shown, base, std::move(table), number});
  }

  std::vector<TomlFile> files;

 private:
  static IncludePlace at(const toml::source_region& region, const std::string& shown, int number) {
    const Order order{.source = number,
                      .line = static_cast<int>(region.begin.line),
                      .column = static_cast<int>(region.begin.column)};
    return {Place{.file = shown, .order = order, .override_text = ""}.text(), order};
  }

  void include(const toml::table& table, const std::string& shown, const fs::path& base,
               int number) {
    const auto* node = table.get("include");
    if (node == nullptr) return;
    const auto one = [&](const toml::node& item) {
      const IncludePlace place = at(item.source(), shown, number);
      const auto* name = item.as_string();
      if (name == nullptr || name->get().empty() || name->get().find('\0') != std::string::npos) {
        return problem(place, "`include` must be a file name or a list of file names",
                       "for instance include = \"base.toml\"");
      }
      const fs::path relative(name->get());
      const fs::path beside = (fs::path(shown).parent_path() / relative).lexically_normal();
      file(base / relative, beside.string(), place);
    };
    if (const auto* list = node->as_array()) {
      for (const auto& item : *list) one(item);
    } else {
      one(*node);
    }
  }

  void problem(const IncludePlace& from, const std::string& what, const std::string& hint) {
    problems_.push_back({from.place, what, hint, "", from.order});
  }

  std::vector<Problem>& problems_;
  std::vector<fs::path> open_;
  size_t num_files_ = 0;
  int next_number_ = 0;
};

}  // namespace

int toml_nesting(std::string_view text) {
  int brackets = 0, dots = 0, deepest = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = skip_string(text, i);
      continue;
    }
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    if (c == '[' || c == '{') {
      ++brackets;
      dots = 0;
    } else if (c == ']' || c == '}') {
      brackets = std::max(0, brackets - 1);
      dots = 0;
    } else if (c == '.') {
      ++dots;
    } else if (c == '\n' || c == ',' || c == '=') {
      dots = 0;
    }
    deepest = std::max({deepest, brackets, dots});
    ++i;
  }
  return deepest;
}

std::vector<TomlFile> read_toml_file(const fs::path& path, std::vector<Problem>& problems) {
  FileReader reader(problems);
  reader.file(path, path.string(), {"", {.source = 0}});
  return std::move(reader.files);
}

std::vector<TomlFile> read_toml_text(std::string_view text, const std::string& shown,
                                     const fs::path& base, std::vector<Problem>& problems) {
  FileReader reader(problems);
  reader.text(text, shown, base);
  return std::move(reader.files);
}

void add_inherited(std::string_view text, const std::string& shown, std::vector<TomlFile>& files,
                   std::vector<Problem>& problems) {
  if (text.empty()) return;
  auto beneath = read_toml_text(text, shown, {}, problems);
  for (auto& file : beneath) file.number = Order::kTaken;
  files.insert(files.begin(), std::make_move_iterator(beneath.begin()),
               std::make_move_iterator(beneath.end()));
}

}  // namespace stretto::config
