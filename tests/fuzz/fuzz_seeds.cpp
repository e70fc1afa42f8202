// Fuzz target: any bytes as seeds.json, and as the words of --seeds. Every outcome but runs or an
// error in words is a bug; what was accepted survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "seeds/seed_list.h"
#include "seeds/seeds_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto runs = seeds::parse_seeds_json(text, "fuzz");
    const auto json = seeds::seeds_json(runs, std::vector<seeds::RunScores>(runs.size()), {});
    if (seeds::parse_seeds_json(json.dump(), "fuzz").size() != runs.size()) std::abort();
  } catch (const Error&) {
  }
  try {
    if (seeds::parse_seeds(text).empty()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
