#include "search/hosts.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/system_info.h"
#include "base/text.h"

namespace stretto::search {
namespace {

constexpr int64_t kMostSlots = 4096, kMostGpus = 1024;
constexpr size_t kLongestHostName = 255;

/// One line of a host file.
class HostLine {
 public:
  HostLine(const std::string& where, size_t number) : where_(where), number_(number) {}

  Host read(const std::vector<std::string>& words) const {
    Host host{.name = words.front()};
    check_name(host.name);
    if (host.name == "localhost" || host.name == host_name()) host.name.clear();
    for (size_t i = 1; i < words.size(); ++i) {
      if (const auto slots = count_of(words[i], "slots=", 1, kMostSlots)) {
        host.slots = *slots;
      } else if (const auto gpus = count_of(words[i], "gpus=", 0, kMostGpus)) {
        for (int64_t gpu = 0; gpu < *gpus; ++gpu) host.gpus.push_back(std::to_string(gpu));
      } else {
        wrong("`" + printable(words[i]) + "` is neither slots=N nor gpus=N",
              "a line is NAME slots=8 gpus=2");
      }
    }
    return host;
  }

  [[noreturn]] void wrong(const std::string& what, const std::string& hint) const {
    throw Error(ExitCode::kUsage, where_ + ":" + std::to_string(number_) + ": " + what, hint);
  }

 private:
  // It stands on a command line, where a name that begins with - would be an option.
  void check_name(const std::string& name) const {
    const bool is_name = name.size() <= kLongestHostName && name.front() != '-' &&
                         std::all_of(name.begin(), name.end(), [](char c) {
                           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                                  std::string_view("._-@:%[]").find(c) != std::string_view::npos;
                         });
    if (!is_name) wrong("`" + printable(name) + "` is no name of a host", "write it as for ssh");
  }

  std::optional<int64_t> count_of(const std::string& word, std::string_view key, int64_t least,
                                  int64_t most) const {
    if (!word.starts_with(key)) return std::nullopt;
    int64_t count = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + key.size(), end, count);
    if (error != std::errc() || stop != end || count < least || count > most) {
      wrong("`" + printable(word) + "` must be a whole number from " + std::to_string(least) +
                " to " + std::to_string(most),
            "a line is NAME slots=8 gpus=2");
    }
    return count;
  }

  const std::string& where_;
  size_t number_;
};

bool is_gpu(const std::string& file) {
  constexpr std::string_view kStem = "nvidia";
  return file.starts_with(kStem) && file.size() > kStem.size() &&
         std::all_of(file.begin() + kStem.size(), file.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

std::vector<Host> parse_hosts(std::string_view text, const std::string& where) {
  std::vector<Host> hosts;
  size_t number = 0;
  for (const auto& line : split(text, '\n')) {
    ++number;
    std::string content = line.substr(0, line.find('#'));
    std::replace_if(
        content.begin(), content.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
    const auto words = split_words(content);
    if (words.empty()) continue;
    const HostLine reader(where, number);
    Host host = reader.read(words);
    const bool twice = std::any_of(hosts.begin(), hosts.end(),
                                   [&](const Host& other) { return other.name == host.name; });
    if (twice) reader.wrong(host.shown() + " is there already", "leave one of the lines out");
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) {
    throw Error(ExitCode::kUsage, where + ": there is no host in it",
                "write a line for each: NAME slots=8 gpus=2");
  }
  return hosts;
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> gpus;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const auto& gpu : split(visible, ',')) {
      if (!trim(gpu).empty() && trim(gpu) != "-1") gpus.push_back(trim(gpu));
    }
    return gpus;
  }
  size_t count = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator("/dev", error)) {
    count += is_gpu(file.path().filename().string()) ? 1 : 0;
  }
  for (size_t gpu = 0; gpu < count; ++gpu) gpus.push_back(std::to_string(gpu));
  return gpus;
}

}  // namespace stretto::search
