#include "seeds/seed_list.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace stretto::seeds {
namespace {

constexpr int64_t kMostSeeds = 1000;
constexpr int64_t kLargestSeed = int64_t{1} << 53;  // of run.seed

std::optional<int64_t> seed_of(const std::string& word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > kLargestSeed) return std::nullopt;
  return value;
}

[[noreturn]] void refuse_seeds(const std::string& text, const std::string& what) {
  throw Error(ExitCode::kUsage, "--seeds " + printable(text) + ": " + what,
              "--seeds 5 trains the seeds 1 to 5, --seeds 3,7,9 these three");
}

}  // namespace

std::vector<int64_t> parse_seeds(const std::string& text) {
  auto words = split(text, ',');
  const bool is_list = words.size() > 1;
  if (is_list && trim(words.back()).empty()) words.pop_back();
  std::vector<int64_t> seeds;
  for (const auto& word : words) {
    const auto seed = seed_of(trim(word));
    if (!seed) refuse_seeds(text, "`" + printable(word) + "` is no whole number from 0 to 2^53");
    seeds.push_back(*seed);
  }
  const int64_t count = is_list ? std::ssize(seeds) : seeds.front();
  if (count < 1 || count > kMostSeeds) {
    refuse_seeds(text, "there may be 1 to " + with_thousands(kMostSeeds) + " seeds");
  }
  if (!is_list) {
    seeds.resize(static_cast<size_t>(count));
    std::iota(seeds.begin(), seeds.end(), int64_t{1});
  }
  if (std::set<int64_t>(seeds.begin(), seeds.end()).size() != seeds.size()) {
    refuse_seeds(text, "a seed stands twice");
  }
  return seeds;
}

std::string seeds_text(const std::vector<int64_t>& seeds) {
  std::vector<std::string> words;
  for (const int64_t seed : seeds) words.push_back(std::to_string(seed));
  return join(words, ", ");
}

}  // namespace stretto::seeds
