#include "data/bad_samples.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace stretto::data {
namespace {

// An error of ten faults is still one paragraph.
constexpr size_t kMostBytesOfFault = 44, kMostBytesLeftOut = 160;
constexpr size_t kMostStoredBytes = 1000;

/// A place in JSON, "data[0].paragraphs[60].qas[0]", is left out: it would leave no room for the
/// name of the sample and its fault, which stand behind it.
std::string_view without_path(std::string_view fault) {
  const size_t end = fault.find(": ");
  if (end == std::string_view::npos) return fault;
  const std::string_view place = fault.substr(0, end);
  const bool is_path = place.find('[') != std::string_view::npos && place.ends_with(']') &&
                       place.find(' ') == std::string_view::npos;
  return is_path ? fault.substr(end + 2) : fault;
}

/// "/a/b/c.wav: is not there" as "c.wav: is not there": else the folders alone are left of it. What
/// lies below a folder of the data keeps its own: "cat/1.png" is of a class.
std::string without_folders(std::string_view fault) {
  std::string shorter;
  while (!fault.empty()) {
    const size_t end = std::min(fault.find(' '), fault.size());
    const std::string_view word = fault.substr(0, end);
    const size_t slash = word.rfind('/');
    const bool is_path = word.starts_with('/') && word.ends_with(':');
    shorter += is_path ? word.substr(slash + 1) : word;
    if (end < fault.size()) shorter += ' ';
    fault.remove_prefix(std::min(end + 1, fault.size()));
  }
  return shorter;
}

/// ":17: an empty text" as "17: an empty text", cut: ten of them fit into a cell of the report.
std::string brief(std::string_view fault) {
  fault.remove_prefix(std::min(fault.find_first_not_of(": "), fault.size()));
  fault = without_path(fault);
  return printable(without_folders(fault), kMostBytesOfFault);
}

[[noreturn]] void throw_too_many(const BadSampleRule& rule, const LeftOut& left_out) {
  const std::string first = left_out.first.empty()
                                ? ""
                                : "; the first: " + left_out.first.front().file +
                                      printable(left_out.first.front().fault, kMostBytesLeftOut);
  throw Error(ExitCode::kBadData,
              "more than data.max_bad_samples = " + with_thousands(rule.most) +
                  " samples cannot be read or used" + first,
              "look for a wrong file, column, separator or encoding, or raise "
              "data.max_bad_samples");
}

}  // namespace

SampleError::SampleError(std::string file, std::string fault, const std::string& advice)
    : Error(ExitCode::kBadData, file + fault, advice),
      file_(std::move(file)),
      fault_(std::move(fault)) {}

SampleError SampleError::of(const Error& error, const std::string& file) {
  const std::string_view what = error.what();
  if (what.starts_with(file)) {
    return {file, std::string(what.substr(file.size())), error.advice()};
  }
  return {file, ": " + std::string(what), error.advice()};
}

std::string LeftOut::text() const {
  if (count == 0) return "";
  std::vector<std::string> parts;
  std::string named;  // the file before
  for (const auto& [file, fault] : first) {
    const std::string place = fault.starts_with(": ") ? file + ": " : file + ":";
    parts.push_back((file == named ? "" : place) + brief(fault));
    named = file;
  }
  if (std::cmp_greater(count, first.size())) parts.emplace_back("…");
  return counted(count, "bad sample") + ": " + join(parts, "; ");
}

void BadSamples::add(const SampleError& error) {
  if (!rule_.skips) {
    faults_.push_back(error);
    if (faults_.size() == kNamedBadSamples) throw_faults();
    return;
  }
  ++left_out_.count;
  if (left_out_.first.size() < kNamedBadSamples) {
    left_out_.first.push_back({.file = error.file(), .fault = error.fault()});
  }
  require_within(rule_, left_out_);
}

void BadSamples::end_file() {
  if (!faults_.empty()) throw_faults();
}

/// Several are no SampleError, which a reader that is inside of another sample would go on from.
void BadSamples::throw_faults() {
  const auto faults = std::exchange(faults_, {});
  const SampleError& first = faults.front();
  if (faults.size() == 1) throw SampleError(first);
  std::vector<std::string> others, all{first.what()};
  for (size_t i = 1; i < faults.size(); ++i) {
    const std::string& file = faults[i].file();
    const bool same = file == first.file();
    others.push_back((same ? "" : std::filesystem::path(file).filename().string() + ":") +
                     brief(faults[i].fault()));
    all.emplace_back(faults[i].what());
  }
  const bool maybe_more = faults.size() == kNamedBadSamples;
  throw Error(ExitCode::kBadData,
              std::string(first.what()) + (maybe_more ? "; at least " : "; ") +
                  std::to_string(others.size()) + " more: " + join(others, "; "),
              first.advice() + "; data.bad_samples = \"skip\" leaves such samples out",
              std::move(all));
}

void require_within(const BadSampleRule& rule, const LeftOut& left_out) {
  if (left_out.count > rule.most) throw_too_many(rule, left_out);
}

void append_left_out(std::vector<uint64_t>& words, const LeftOut& left_out,
                     std::span<const std::string> files) {
  words.push_back(static_cast<uint64_t>(left_out.count));
  words.push_back(left_out.first.size());
  for (const auto& [file, fault] : left_out.first) {
    const auto place = std::find(files.begin(), files.end(), file) - files.begin();
    words.push_back(static_cast<uint64_t>(place));
    const std::string text = fault.substr(0, kMostStoredBytes);
    words.push_back(text.size());
    const size_t begin = words.size();
    words.resize(begin + (text.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(words.data() + begin, text.data(), text.size());
  }
}

bool take_left_out(std::span<const uint64_t> words, size_t& at, std::span<const std::string> files,
                   LeftOut& left_out) {
  const auto has = [&](size_t count) { return count <= words.size() - at; };
  if (!has(2) || words[at + 1] > kNamedBadSamples) return false;
  left_out = {.count = static_cast<int64_t>(words[at]), .first = {}};
  const size_t named = words[at + 1];
  at += 2;
  for (size_t i = 0; i < named; ++i) {
    if (!has(2) || words[at] >= files.size() || words[at + 1] > kMostStoredBytes) return false;
    const std::string& file = files[words[at]];
    const size_t bytes = words[at + 1];
    const size_t size = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    at += 2;
    if (!has(size)) return false;
    std::string fault(bytes, '\0');
    std::memcpy(fault.data(), words.data() + at, bytes);
    left_out.first.push_back({.file = file, .fault = std::move(fault)});
    at += size;
  }
  return true;
}

}  // namespace stretto::data
