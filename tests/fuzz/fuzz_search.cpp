// Fuzz target: a search file, or, behind a first byte 'j', the JSON of a journal's lines, or,
// behind 'h', a host file. Every outcome but a space, a replayed search, hosts or an error in words
// is a bug; so is a point that a space draws and does not contain. A journal is read as it is, with
// the checksums of its lines, and line by line without those that are no JSON.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "config/load.h"
#include "experiment/rules.h"
#include "search/build_space.h"
#include "search/explain.h"
#include "search/hosts.h"
#include "search/journal.h"
#include "search/path_values.h"
#include "search/search_files.h"
#include "search/search_html.h"
#include "search/search_state.h"
#include "tests/fuzz/one_reader.h"

namespace {

using namespace stretto;

void read_file(std::string_view text) {
  search::SearchFileOptions options, fallback;
  std::vector<config::Problem> problems;
  const auto origins =
      config::load_text(text, "/nowhere/space.toml", "/nowhere", {}, search::search_schema(options),
                        search::search_schema(fallback), problems);
  if (!experiment::readable(problems)) return;
  search::make_values_absolute(options, [](const std::string&) { return "/nowhere"; });
  const auto space = search::build_space(options, origins, {}, problems);
  search::build_points(options.search, space, origins, {}, problems);
  if (!problems.empty()) return;
  for (uint64_t trial = 0; trial < 4; ++trial) {
    if (!space.contains(space.draw(1, trial, 0))) std::abort();
  }
  const search::Grid grid(space);
  grid.size(1000);
  auto point = grid.first();
  for (int i = 0; i < 4 && point; ++i, point = grid.next(*point)) {
    if (!space.contains(*point)) std::abort();
  }
}

/// The lines, each behind its checksum.
std::string with_checksums(std::string_view lines) {
  std::string journal, hash;
  for (const auto& line : split(lines, '\n')) {
    hash = hex64(xxh3_64(hash + line));
    journal.append(hash).append(" ").append(line).append("\n");
  }
  return journal;
}

void read_journal(const std::string& text) {
  const auto content = search::parse_journal(text, "journal");
  if (content.bytes > text.size()) std::abort();
  if (content.is_torn == (content.bytes == text.size())) std::abort();
}

void replay(std::string_view text) {
  std::vector<search::JournalEntry> entries;
  for (const auto& line : split(text, '\n')) {
    auto entry = search::JournalEntry::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_object()) entries.push_back(std::move(entry));
  }
  const auto state = search::SearchState::replay(entries, "journal");
  search::explain(state);
  search::trials_jsonl(state);
  search::render_search_html({.state = state, .curves = {}, .title = "x", .status = "finished"});
}

void read_hosts(std::string_view text) {
  for (const auto& host : search::parse_hosts(text, "hosts")) {
    if (host.slots < 1 || host.name.starts_with("-")) std::abort();
  }
}

template <class Call>
void attempt(Call call) {
  try {
    call();
  } catch (const Error&) {
    // In words.
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return stretto::testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view rest = input.substr(input.empty() ? 0 : 1);
  if (input.starts_with('j')) {
    attempt([&] { read_journal(std::string(rest)); });
    attempt([&] { read_journal(with_checksums(rest)); });
    attempt([&] { replay(rest); });
  } else if (input.starts_with('h')) {
    attempt([&] { read_hosts(rest); });
  } else {
    attempt([&] { read_file(input); });
  }
  return 0;
}
